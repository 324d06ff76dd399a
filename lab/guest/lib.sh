# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# What init and the tests of the guest share. Functions of the machine have short names; scripts/lab puts them there.
# shellcheck source=/dev/null
. /lab/config
export RIG_FIRMWARE_DIR=/lab
: "${TRANSPORT:?}" "${IOMMU:?}"

# shellcheck disable=SC2034 # for who sources this
BOARDS='a b c d'

# place NAME: the PCI address.
place() {
	case $1 in
	edu) echo 0000:00:05.0 ;;
	a) echo 0000:00:06.0 ;;  # 256 MiB of memory, all of it in the aperture
	nvme) echo 0000:00:07.0 ;;
	b) echo 0000:00:08.0 ;;  # the same with an aperture of 16 MiB
	c) echo 0000:01:00.0 ;;  # the same as a, behind a port that can unplug it
	d) echo 0000:00:0a.0 ;;  # the same as a, whose process may be killed
	e) echo 0000:02:00.0 ;;  # two more, which share a group: functions of one device that nothing isolates
	f) echo 0000:02:00.1 ;;
	g) echo 0000:03:01.0 ;;  # two edus that share a group and have no reset of their own: behind a conventional bridge
	h) echo 0000:03:02.0 ;;
	i) echo 0000:00:0d.0 ;;  # the same as a, but the destination of its first copy is where nothing is mapped
	esac
}

# device NAME [,OPTIONS]: the device string of rig_vfio.h.
device() {
	printf '%s,transport=%s%s' "$(place "$1")" "$TRANSPORT" "${2-}"
}

# attribute NAME FILE: a line of its folder in /sys.
attribute() {
	cat "/sys/bus/pci/devices/$(place "$1")/$2"
}

# bind ADDRESS: to vfio-pci, whatever drives it now.
bind() {
	folder=/sys/bus/pci/devices/$1
	[ -d "$folder" ] || return 1
	echo vfio-pci >"$folder/driver_override"
	[ ! -e "$folder/driver" ] || echo "$1" >"$folder/driver/unbind"
	echo "$1" >/sys/bus/pci/drivers_probe
}

fail() {
	echo "$*"
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

# same WHAT GOT EXPECTED
same() {
	[ "$2" = "$3" ] || fail "$1: $2, not $3"
}

# status EXPECTED COMMAND ...: runs it, and its exit status must be that. Its output is in /tmp/said too.
status() {
	expected=$1
	shift
	got=0
	"$@" >/tmp/said 2>&1 || got=$?
	cat /tmp/said
	[ "$got" = "$expected" ] || fail "exit status $got, not $expected: $*"
}

# said WORDS: the output of the last status has them.
said() {
	grep -qF -- "$1" /tmp/said || fail "nothing said of \"$1\""
}

# await COMMAND ...: until it succeeds; the test's own time ends it.
await() {
	until "$@"; do
		sleep 0.1
	done
}

# soon COMMAND ...: a second at the most, as the program that said "noticed after N ms" measured it, in one of three
# tries: the machine may have been away.
soon() {
	for _ in 1 2 3; do
		"$@"
		ms=$(sed -n 's/^noticed after \([0-9]*\) ms$/\1/p' /tmp/said)
		[ "${ms:-9999}" -gt 1000 ] || return 0
	done
	fail "noticed after $ms ms, three times"
}

# flr NAME: the command that resets the function from outside of its driver.
flr() {
	echo "echo 1 >/sys/bus/pci/devices/$(place "$1")/reset"
}
