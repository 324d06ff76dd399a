# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# What bench/rails.sh and bench/remote.sh, which source it, have in common: the floor, libfabric's own ping-pong, and a folder $work,
# which they remove.

# PREFIX is put before each command, such as "nice -n -20" on a machine with other work.
prefix=${PREFIX:-}
work=$(mktemp -d)

# need_pingpong NAME: ends NAME where there is none.
need_pingpong() {
	command -v fi_pingpong >/dev/null || {
		echo "$1: fi_pingpong is not installed (libfabric-bin)" >&2
		exit 77
	}
}

# floor PROVIDER ENDPOINT BYTES COUNT: microseconds of one way.
floor() {
	# shellcheck disable=SC2086 # a list of words
	$prefix fi_pingpong -p "$1" -e "$2" -S "$3" -I "$4" >"$work/server" 2>&1 &
	server=$!
	tries=0
	# The server takes a moment to listen.
	# shellcheck disable=SC2086
	until timeout 60 $prefix fi_pingpong -p "$1" -e "$2" -S "$3" -I "$4" 127.0.0.1 >"$work/client" 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 50 ] || {
			cat "$work/client" >&2
			exit 1
		}
		sleep 0.1
	done
	wait "$server" || :
	awk 'END { print $7 }' "$work/client"
}
