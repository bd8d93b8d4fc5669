# SPDX-License-Identifier: MIT
# vm: level=all 6.1=long test=long timeout=240
#
# Keys of memory regions, in the hands of peers that use them without rmpool (rawkey): a key
# of one trust group is of no use to a peer of another one, and one from before a right was
# withdrawn is of no use to anybody, while the current ones of the own group work. VM a is
# three peers, each from an address of its own, on one device on either side: so it is not
# the device that makes the difference.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

red=10.77.0.1			# VM a
blue=10.77.0.81
plain=10.77.0.82
size=65536

# Ours, of which nothing was changed; then it is filled anew.
untouched()	# NAME BYTE NEW-BYTE
{
	step_gives "$1: the memory is as it was" OK painted mem 0 $size "$2"
	step_gives "$1: other bytes" OK paint mem "$3"
}

if [ "$VM" = b ]; then
	check "peer add: red" rmpool peer add red "v1:$red:13579" --group red
	check "peer add: blue" rmpool peer add blue "v1:$blue:13579" --group blue
	check "peer add: of no group" rmpool peer add plain "v1:$plain:13579"
	steps_start
	step_gives "publish" OK publish mem $size
	step_gives "fill it" OK paint mem 1
	barrier published
	barrier written 60
	step_gives "what was written with a key arrived" OK painted mem 100 100 2
	step_gives "nothing before it" OK painted mem 0 100 1
	step_gives "nothing behind it" OK painted mem 200 $((size - 200)) 1
	step_gives "other bytes" OK paint mem 3
	barrier painted
	barrier crossed 120
	untouched "keys of other groups" 3 4

	step_gives "withdraw a right" OK allow mem blue:rw plain:rw
	same "the region got other keys" "rekeyed 1" "$step_text"
	barrier withdrawn
	barrier withdrawn-used 60
	untouched "withdrawn" 4 5

	step_gives "give it back" OK allow mem everybody
	barrier back
	barrier deaf 60
	step_gives "withdraw it from one who does not answer" OK allow mem blue:rw plain:rw
	step_took "that was waited for" 1500 10000
	barrier cut
	barrier cut-used 60
	untouched "withdrawn, and no answer" 5 6

	step_gives "give it back" OK allow mem everybody
	barrier back-again
	barrier left 60
	check "peer del" rmpool peer del red
	check "peer add to another group" rmpool peer add red "v1:$red:13579" --group green
	barrier moved
	barrier moved-used 60
	untouched "in another group" 6 7
	barrier end 60
	steps_end
	for peer in red blue plain; do
		rmpool -q peer del $peer
	done
	exit
fi

# Tells the program something: one test, the first word of what it answers.
raw()		# NAME WANTED COMMAND...
{
	local name=$1 wanted=$2

	shift 2
	said=$(talk_ask raw "$@")
	echo "$*: $said"
	if [ "${said%%[ :]*}" = "$wanted" ]; then
		ok "$name"
	else
		not_ok "$name" "$* gave '$said', not '$wanted'"
		return 1
	fi
}

# A key that must not work, or not any more: over the queue pair that is there, if there is
# one, and over another.
refused()	# NAME PEER KEY BYTE
{
	raw "$1: no read" access read "$2" "$3" 0 100 "$4"
	raw "$1: no write" access write "$2" "$3" 0 100 99
}

for address in $blue $plain; do
	check "one more address" ip addr add "$address/24" dev data0
	check "the device has it" wait_until 10 gid_index rxe0 "$address"
done
barrier published
talk_start raw rawkey "$PEER_IP0" 13579
same "it runs" ready "$(talk_hear raw)"
declare -A number
for peer in red blue plain; do
	raw "$peer comes" OK join $peer "${!peer}"
	raw "$peer: a key" OK keys $peer mem $peer-1
	number[$peer]=$said
	raw "$peer reads with it" same read $peer $peer-1 0 4096 1
done
same "each has another key" 3 "$(printf '%s\n' "${number[@]}" | sort -u | wc -l)"
raw "and writes" written write red red-1 100 100 2
raw "what it reads then" same read red red-1 100 100 2
barrier written
barrier painted 60

# Keys that are current: their own peers use them before and afterwards.
refused "blue, a key of red" blue red-1 3
refused "red, a key of blue" red blue-1 3
refused "the default group, a key of red" plain red-1 3
refused "red, a key of the default group" red plain-1 3
for peer in red blue plain; do
	raw "$peer: its own key works still" same read $peer $peer-1 0 100 3
done
barrier crossed

# It said that it has let go of the keys, so nobody closes its queue pair.
barrier withdrawn 60
raw "its queue pair is there" no closed red
refused "withdrawn" red red-1 4
raw "it cannot have another" refused keys red mem none
refused "of another group, too: all keys are others" blue blue-1 4
refused "blue, the old key of red" blue red-1 4
raw "who may has a new key" OK keys blue mem blue-2
raw "that works" same read blue blue-2 0 100 4
barrier withdrawn-used

barrier back 60
raw "a key again" OK keys red mem red-2
raw "not the one of before" access read red red-1 0 100 5
raw "that works" same read red red-2 0 100 5
raw "nothing is answered any more" OK deaf red
barrier deaf
barrier cut 60
raw "its queue pair was closed" yes closed red
raw "a new one" OK fresh red
refused "withdrawn, and no answer" red red-2 5
raw "who may has a new key" OK keys blue mem blue-3
raw "that works" same read blue blue-3 0 100 5
barrier cut-used

barrier back-again 60
raw "a key again" OK keys red mem red-3
raw "that works" same read red red-3 0 100 6
raw "red leaves" OK leave red
barrier left
barrier moved 60
raw "it comes again, in another group" OK join red $red
refused "the key of the group before" red red-3 6
raw "a key of the new one" OK keys red mem red-4
raw "that works" same read red red-4 0 100 6
barrier moved-used
check "it ends well" talk_end raw
for address in $blue $plain; do
	ip addr del "$address/24" dev data0
done
barrier end
