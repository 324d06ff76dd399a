# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC1090
# run-test.sh NAME: one test, a function of that name in a test_*.sh.
# shellcheck source=/dev/null
. /lab/lib.sh
for file in /lab/test_*.sh; do
	. "$file"
done
set -e
command -v "$1" >/dev/null || fail "no function of that name"
"$1"
