# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# The laws of the driver contract (docs/conformance.md) against functions of the kernel's VFIO.

# keeps_every_law DEVICE [SECOND]
keeps_every_law() {
	got=0
	/lab/rig-conform "$@" >/tmp/laws 2>&1 || got=$?
	grep -v '^passed\|^skipped' /tmp/laws || :
	[ "$got" = 0 ] || fail "exit status $got: $*"
}

a_board_keeps_every_law() {
	keeps_every_law "$(device a)" "$(device b)"
}

a_board_keeps_every_law_with_stores() {
	keeps_every_law "$(device a ,completion=store)" "$(device b ,completion=store)"
}

edu_keeps_every_law() {
	keeps_every_law "$(device edu)"
}
