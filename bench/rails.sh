#!/bin/sh
# SPDX-License-Identifier: MIT
# What a rail takes beside its floor, libfabric's own ping-pong over the same provider (fi_pingpong of libfabric-bin), in one
# run: the two take turns, and the least of each is compared, since what else the machine does only ever adds.
# bench/rails.sh [BUILD_DIR [ROUNDS]]
set -eu
# shellcheck source=scripts/tie
. "$(dirname "$0")/../scripts/tie"
build=${1:-build}
rounds=${2:-15}
program=$build/bench/bench-rails
[ -x "$program" ] || {
	echo "rails.sh: $program is not built (cmake --build $build --target bench-rails)" >&2
	exit 77
}
# shellcheck source=bench/floor.sh
. "$(dirname "$0")/floor.sh"
trap 'rm -rf "$work"' EXIT
need_pingpong rails.sh

# rail PROVIDER BYTES COUNT HOW
rail() {
	# shellcheck disable=SC2086
	timeout 60 $prefix "$program" "$@" 2>"$work/stats" | awk '{ print $1 }'
}

least() {
	sort -n "$1" | head -n 1
}

middle() {
	sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# row OVER PROVIDER ENDPOINT BYTES COUNT: a rail over OVER beside the floor of PROVIDER
row() {
	rm -f "$work"/rail "$work"/host "$work"/floor
	round=0
	while [ "$round" -lt "$rounds" ]; do
		floor "$2" "$3" "$4" "$5" >>"$work/floor"
		rail "$1" "$4" "$5" rail >>"$work/rail"
		rail "$1" "$4" "$5" host >>"$work/host"
		round=$((round + 1))
	done
	for how in rail host; do
		awk -v p="$1" -v e="$2-$3" -v b="$4" -v how="$how" -v x="$(least "$work/$how")" -v m="$(middle "$work/$how")" \
			-v f="$(least "$work/floor")" -v fm="$(middle "$work/floor")" 'BEGIN {
			printf "%-6s %-8s %9d %-5s %11.2f %11.2f %11.2f %11.2f %7.2f %11.0f %7.2f\n",
				p, e, b, how, x, m, f, fm, x / f, b / x, f / x }'
	done
}

echo "microseconds of one way: the least and the middle of $rounds runs; MB/s from the least; load $(cut -d ' ' -f 1 /proc/loadavg) on $(nproc) CPUs"
printf '%-6s %-8s %9s %-5s %11s %11s %11s %11s %7s %11s %7s\n' \
	over floor bytes by least middle floor "its middle" time "MB/s" rate
row sealed tcp msg 4096 2000
row tcp tcp msg 4096 2000
row tcp tcp rdm 4096 2000
row shm shm rdm 4096 5000
row sealed tcp msg 67108864 5
row tcp tcp msg 67108864 5
row tcp tcp rdm 67108864 5
row shm shm rdm 67108864 5
echo "by rail: the link's thread answers, as the floor does; by host: a thread of each process that looks at arrived"
