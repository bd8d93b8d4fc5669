# SPDX-License-Identifier: MIT
# vm: module=0 timeout=300 6.1=all test=long
#
# One rail of two breaks under load both ways, in ways that are noticed at once and in one
# that is not. No request fails: what was on it goes over the other one. See
# tests/programs/chaos.sh; 35-chaos has the same at random.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/chaos.sh"

end_host_here()
{
	check "$run: the host ends" talk_end host
	rmpool peer del "$PEER"
}

repeated()
{
	grep -q ' repeated=[1-9]' "$TMP/load"
}

repeated_anywhere()
{
	repeated || there repeated
}

loses_for_a_while()	# VM
{
	on "$1" loses 1 yes
	both load_goes || not_ok "$run: the other rail carries" "see the logs"
	on "$1" loses 1 no
}

if [ "$VM" = b ]; then
	obey
	exit
fi

run_begins "failover"
spared 1 strict
check "a device goes and comes" there device_here 1 300
goes_on
check "here as well" device_here 1 300
goes_on
loses_for_a_while b
goes_on
ok "$run: no request fails"
both end_load_here "$run"
check "$run: slices were posted again" repeated_anywhere
both end_host_here
both end_here "$run"
ask obey_end
