# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# vm: timeout=120 kernels=6.1,6.12
#
# The first steps and the program of the README, as they stand there.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

hello=$RMPOOL_BUILD/tests/unit/hello
digest() { sha256sum "$1" | cut -d' ' -f1; }
cd "$TMP" || exit 1

segment_listed()	# NAME
{
	rmpool segment list | grep -q "$1"
}

if [ "$VM" = b ]; then
	check "peer add a" rmpool peer add a "$PEER_IP0:13579"
	rmpool serve scratch --size 64M >ready &
	serve=$!
	mkfifo enter
	"$hello" <enter >hello.out 2>&1 &
	hello_pid=$!
	exec 3>enter
	check "serve is ready" wait_until 30 grep -qx \
		'ready: vm-b/scratch+0, 67108864 bytes (64 MiB), peers may read and write; Ctrl-C ends' ready
	check "hello publishes" wait_until 30 segment_listed hello
	check "segment list" segment_listed scratch
	check "region list" grep -q scratch <(rmpool region list)
	barrier ready
	barrier moved 90
	echo >&3
	check "hello ends well" wait $hello_pid
	same "hello shows what came" "here is: hello, pool" "$(tail -n 1 hello.out)"
	kill -USR1 $serve
	check "serve tells the digest" wait_until 30 grep -q '^[0-9a-f]\{64\}  vm-b/scratch$' ready
	# Not SIGINT: a shell has its background jobs ignore that.
	kill $serve
	wait $serve
	same "serve ends well" 0 $?
	check "peer del" rmpool peer del a
else
	check "device" rmpool device
	check "peer add b" rmpool peer add b "$PEER_IP0:13579"
	head -c 3M /dev/urandom >model.bin
	barrier ready
	check "put" rmpool put model.bin b/scratch
	check "get" rmpool get b/scratch+1M 4K part.bin
	tail -c +1048577 model.bin | head -c 4096 >wanted
	same "get gives that part" "$(digest wanted)" "$(digest part.bin)"
	check "peer list" grep -q 'rxe1' <(rmpool peer list)
	check "peer list as JSON" python3 -m json.tool <(rmpool -j peer list)
	same "hello puts" "put 12 bytes: done" "$("$hello" b 2>&1)"
	check "accept any" rmpool node set accept=any
	check "monitor" rmpool monitor -t 0.1
	check "info" rmpool info
	barrier moved
fi
