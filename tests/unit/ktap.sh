#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What tests/vm/guest/ktap makes of kernel logs. Prints TAP.
cd "$(dirname "$0")/../vm/guest" || exit 1
number=0 status=0

says()		# NAME WANTED, the log on standard input
{
	local got

	got=$(./ktap)
	number=$((number + 1))
	if [ "$got" = "$2" ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		diff <(echo "$2") <(echo "$got") | sed 's/^/# /'
		status=1
	fi
}

says "a log of 6.12" 'ok test_one
not ok test_two: # test_two: EXPECTATION FAILED at kunit/x_test.c:7 Expected 1 == 2, but 1 == 1 (0x1)
skip test_three: not here' <<'LOG'
[    9.1] something else
[   10.123456]     KTAP version 1
[   10.123457]     # Subtest: rmp_x
[   10.123458]     # module: rmp_x_test
[   10.123459]     1..3
[   10.123460] rmp_x: seed=7
[   10.123461]     ok 1 test_one
[   10.123462] rmp_x: between
[   10.123463]     # test_two: EXPECTATION FAILED at kunit/x_test.c:7
    Expected 1 == 2, but
        1 == 1 (0x1)
[   10.123464]     not ok 2 test_two
[   10.123465]     ok 3 test_three # SKIP not here
[   10.123466] # rmp_x: pass:1 fail:1 skip:1 total:3
[   10.123467] not ok 1 rmp_x
LOG

says "a log of 6.1, with who printed it" 'ok test_one
ok test_two' <<'LOG'
[    1.000000][  T123]     # Subtest: rmp_x
[    1.000000][  T123]     1..2
[    1.000000][  T123]     ok 1 - test_one
[    1.000000][  T123]     ok 2 - test_two
[    1.000000][  T123] ok 1 - rmp_x
LOG

says "two suites of one module, one that breaks off" 'ok test_one
ok test_two
not ok rmp_y: 1 of 3 cases have a result' <<'LOG'
    # Subtest: rmp_x
    1..1
    ok 1 test_one
ok 1 rmp_x
    # Subtest: rmp_y
    1..3
    ok 1 test_two
LOG

says "a suite whose own set-up fails" 'not ok rmp_x: 0 of 2 cases have a result' <<'LOG'
    # Subtest: rmp_x
    1..2
not ok 1 rmp_x
LOG

says "no suite" 'not ok log: no suite in it' <<'LOG'
[    1.0] loading out-of-tree module taints kernel.
LOG

echo "1..$number"
exit $status
