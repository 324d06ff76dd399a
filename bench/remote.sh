#!/bin/sh
# SPDX-License-Identifier: MIT
# What devices behind agents take beside their floors, in one run: copies of 64 MiB beside fi_pingpong of libfabric-bin over tcp,
# allocations beside a round trip of the connection. Two agents and the program on this machine, over loopback; the two
# sides take turns, and the least of each is compared, since what else the machine does only ever adds.
# bench/remote.sh [BUILD_DIR [ROUNDS]]
set -eu
# shellcheck source=scripts/tie
. "$(dirname "$0")/../scripts/tie"
build=${1:-build}
rounds=${2:-8}
for program in bench/bench-remote tools/rig-agent; do
	[ -x "$build/$program" ] || {
		echo "remote.sh: $build/$program is not built (cmake --build $build)" >&2
		exit 77
	}
done
# shellcheck source=bench/floor.sh
. "$(dirname "$0")/floor.sh"
agents=
# shellcheck disable=SC2086 # a list of numbers
trap 'kill $agents 2>/dev/null || :; rm -rf "$work"' EXIT
need_pingpong remote.sh

# agent NUMBER: its address, once it listens.
agent() {
	# shellcheck disable=SC2086
	$prefix "$build/tools/rig-agent" --key "$work/key" --listen 127.0.0.1:0 sim >"$work/agent$1" 2>&1 &
	agents="$agents $!"
	until grep -q '^listening at' "$work/agent$1"; do
		sleep 0.05
	done
	awk '/^listening at/ { print $3 }' "$work/agent$1" >"$work/address$1"
}

"$build/tools/rig-agent" --make-key "$work/key" >/dev/null
agent 1
agent 2
round=0
while [ "$round" -lt "$rounds" ]; do
	time=$(floor tcp msg 67108864 5)
	echo "floor $time"
	# shellcheck disable=SC2086
	$prefix "$build/bench/bench-remote" "$work/key" RVX1:0 "$(cat "$work/address1")" "$(cat "$work/address2")"
	round=$((round + 1))
done >"$work/rows"
echo "the least of $rounds runs, microseconds; load $(cut -d ' ' -f 1 /proc/loadavg) on $(nproc) CPUs"
awk '{ if (!($1 in least) || $2 < least[$1]) least[$1] = $2 }
	END {
		printf "%-16s %10.1f, a round trip %.1f: %.2f (target at most 1.5)\n", "allocate", least["allocate"],
			least["round-trip"], least["allocate"] / least["round-trip"]
		n = split("there back there-borrowed back-borrowed between", rows, " ")
		for (i = 1; i <= n; i++)
			printf "%-16s %10.1f, fi_pingpong %.1f: %.2f of its bandwidth (target at least 0.8)\n", rows[i],
				least[rows[i]], least["floor"], least["floor"] / least[rows[i]]
	}' "$work/rows"
