# SPDX-License-Identifier: MIT
# vm: timeout=180
#
# Registering memory on two devices: chunks, holes, limits, many threads.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

cd "$TMP" || exit 1
check_lines "memory" memory regions

# An ordinary user who may open the device.
groupadd --system rmpool-test && chgrp rmpool-test /dev/rmpool &&
	chmod 660 /dev/rmpool || exit 1
as_user()	# BYTES COMMAND...
{
	prlimit --memlock="$1:$1" setpriv --reuid=nobody --regid=nogroup \
		--groups=rmpool-test --inh-caps=-all --bounding-set=-all "${@:2}"
}
check_lines "64 MiB" as_user $((64 << 20)) memory limit $((64 << 20))
check_lines "50 MiB" as_user $((50 << 20)) memory limit $((50 << 20))

check_fails "no group, no access" "rmpool-test" \
	setpriv --reuid=nobody --regid=nogroup --clear-groups rmpool serve --size 4K x
check_fails "serve too much" "RLIMIT_MEMLOCK" \
	as_user $((1 << 20)) rmpool serve --size 8M x
groupdel rmpool-test
