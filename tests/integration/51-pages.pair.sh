# SPDX-License-Identifier: MIT
# vm: timeout=300 level=all test=long
#
# Data in huge pages, and in memory whose chunks were dealt to the devices: b has
# the memory, a puts and gets over both rails.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

cd "$TMP" || exit 1

random_file()	# NAME BYTES
{
	head -c "$2" /dev/urandom >"$1"
}

# Puts a file of random bytes, gets it back, and compares.
round_trip()	# SEGMENT BYTES
{
	random_file sent "$2" && rmpool put sent "$PEER/$1" && gets_the_same "$1"
}

gets_the_same()	# SEGMENT
{
	rmpool get "$PEER/$1" "$(stat -c %s sent)" received && cmp sent received
}

# Bytes that each rail has put since it was made.
rails_put()
{
	rmpool -j peer list | python3 -c '
import json, sys
for peer in json.load(sys.stdin)["peers"]:
    print(*(rail["put_bytes"] for rail in peer["rails"]))'
}

both_rails_put()	# BEFORE: each more than then
{
	local a b c d

	read -r a b <<<"$1"
	read -r c d < <(rails_put)
	[ "$c" -gt "$a" ] && [ "$d" -gt "$b" ]
}

region_of()	# FIELD: of the one region here
{
	rmpool -j region list | python3 -c "
import json, sys
print(*(r['$1'] for r in json.load(sys.stdin)['regions']))"
}

dealt()
{
	[ "$(region_of memory_regions)" = "$(region_of chunks)" ]
}

on_each()
{
	[ "$(region_of devices)" = "$1" ] && [ "$(region_of chunks)" -gt 8 ]
}

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

size=$((16 * 1024 * 1024 - 300))
if [ "$VM" = b ]; then
	check "huge pages are there" wait_until 20 huge_pages 36
	talk_start host pages host huge
	same "huge pages published" published "$(talk_hear host)"
	barrier published
	barrier huge 200
	check "nothing beside them was written" talk_end host
	huge_pages 0

	# 17 chunks of 1 MiB, of which each device may have 12.
	parameter max_chunk_mib 1
	parameter max_device_mrs 12
	serve mem --size 17M
	check "its chunks are dealt" dealt
	check "to both devices" on_each 2
	barrier dealt
	barrier there 100

	# Then one device gets all, since there is room.
	parameter max_device_mrs 0
	check "a device goes" rxe_del 1
	check "the other one takes its chunks" on_each 1
	check "all of them" dealt
	barrier gone
	barrier still 100
	check "it comes back" rxe_add 1
	check "and gets all" wait_until 20 on_each 2
	barrier back
	barrier again 100
	kill -TERM "$server"
	wait "$server"
	parameter max_chunk_mib 64
else
	barrier published
	check "put to huge pages, and get" round_trip huge $size
	barrier huge 200

	barrier dealt
	before=$(rails_put)
	check "put to dealt chunks, and get" round_trip mem $((17 * 1024 * 1024))
	check "over both rails" both_rails_put "$before"
	barrier there 100
	barrier gone
	check "a device less: all is there" gets_the_same mem
	barrier still 100
	barrier back
	check "the device is back: all is there" gets_the_same mem
	check "and can be put to" round_trip mem $((17 * 1024 * 1024))
	barrier again 100
fi
