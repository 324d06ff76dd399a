# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Agents and a controller behind a network that delays, loses, reorders and swallows. Each is a namespace of its own, c, a
# and b, joined by a veth pair to r, which routes between them; netem is at both ends of each pair. So what goes from one to
# another passes two links.
MACHINES='c a b'
SILENCE_MS=8000 # of jobs that are to fail by it, and by nothing that a busy machine does
export RIG_MODEL_DIR=/lab

# Busybox has an ip that knows no namespaces.
ip() {
	/lab/ip "$@"
}

inside() {
	machine=$1
	shift
	ip netns exec "$machine" "$@"
}

make_net() {
	for machine in r $MACHINES; do
		ip netns delete "$machine" 2>/dev/null || : # of the test before
		ip netns add "$machine"
		ip -n "$machine" link set lo up
	done
	inside r sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	number=0
	for machine in $MACHINES; do
		number=$((number + 1))
		ip -n r link add "to_$machine" type veth peer name eth0 netns "$machine"
		ip -n r address add "10.77.$number.1/24" dev "to_$machine"
		ip -n "$machine" address add "10.77.$number.2/24" dev eth0
		# Packets of their own size, so that a loss or a change of order is of one.
		ip -n r link set "to_$machine" gso_max_segs 1 up
		ip -n "$machine" link set eth0 gso_max_segs 1 up
		ip -n "$machine" route add default via "10.77.$number.1"
	done
}

# links COMMAND ...: for both ends of each link, as its last words.
links() {
	for machine in $MACHINES; do
		"$@" r "to_$machine"
		"$@" "$machine" eth0
	done
}

# slow "WORDS" NAMESPACE LINK: what the end sends passes netem so.
slow() {
	# shellcheck disable=SC2086 # a list of words
	/lab/tc -n "$2" qdisc replace dev "$3" root netem limit 10000 $1
}

# dropped NAMESPACE LINK: packets that its netem dropped, added to $drops.
count_drops() {
	n=$(/lab/tc -n "$1" -s qdisc show dev "$2" | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')
	drops=$((drops + n))
}

# start_agent MACHINE ADDRESS: what it says is in /tmp/MACHINE.log
start_agent() {
	: >"/tmp/$1.out"
	inside "$1" /lab/rig-agent -v --key /tmp/key --listen "$2:7447" sim:mem=64M,hang=3600s >"/tmp/$1.out" 2>"/tmp/$1.log" &
	await grep -q '^listening at' "/tmp/$1.out"
}

# The network so, and its agents at $a and $b. What they said is shown when the test ends.
make_machines() {
	a=10.77.2.2:7447 b=10.77.3.2:7447
	make_net
	links slow "$1"
	rm -f /tmp/key
	/lab/rig-agent --make-key /tmp/key
	trap 'tail -n 8 /tmp/a.log /tmp/b.log >&2' EXIT
	start_agent a "${a%:*}"
	start_agent b "${b%:*}"
}

# program CHECK [ARGUMENT ...]: of lab_net, on the controller's machine.
program() {
	check=$1
	shift
	status 0 inside c /lab/lab_net "$check" /tmp/key "$a" "$b" "$@"
}

# A rail's data connection has 5 s to be made: few on a network that loses, or a busy machine.
blocks_say_equal() {
	for _ in 1 2 3 4; do
		inside c /lab/blocks /tmp/key "$a" "$b" 6 /lab/mix.elf >/tmp/said 2>&1 || :
		cat /tmp/said
		grep -q 'within its time' /tmp/said || break
	done
	said 'results        equal'
}

# 15 ms at the least, four times to an answer; then three times the delay one way, of which half is no measure.
work_over_delaying_links_is_right_and_clocks_are_within_their_bound() {
	make_machines 'delay 20ms 5ms'
	blocks_say_equal
	program clock 60
	links slow 'delay 0ms'
	slow 'delay 100ms' c eth0
	program clock 100
}

work_and_copies_over_links_that_lose_and_reorder_are_right() {
	make_machines 'delay 6ms 3ms reorder 25% 50% loss 2%'
	blocks_say_equal
	program copies 2097157
	drops=0
	links count_drops
	echo "$drops packets were dropped"
	[ "$drops" -gt 50 ] || fail "the network lost next to nothing"
}

# all_ended: each job that began at an agent has ended there.
all_ended() {
	for machine in a b; do
		[ "$(grep -c ' begins$' /tmp/$machine.log)" = "$(grep -c 'ended, its devices are stopped$' /tmp/$machine.log)" ] ||
			return 1
	done
}

# What a program runs while it works: a function of this file.
during() {
	echo ". /lab/lib.sh; . /lab/test_net.sh; $*"
}

a_network_that_swallows_all_fails_the_job_by_its_silence_and_agents_serve_on() {
	make_machines 'delay 20ms 5ms'
	program silent $SILENCE_MS "$(during "links slow 'loss 100%'")"
	said closed
	# They notice by themselves: nothing reaches them.
	await all_ended
	links slow 'delay 20ms 5ms'
	program works
	await all_ended
}

# part add|del: nothing goes from one agent to the other any more, by r; the controller reaches both.
part() {
	ip -n r rule "$1" iif to_a to 10.77.3.0/24 blackhole
	ip -n r rule "$1" iif to_b to 10.77.2.0/24 blackhole
}

agents_that_no_longer_reach_each_other_fail_the_job_with_that_reason() {
	make_machines 'delay 20ms 5ms'
	program silent $SILENCE_MS "$(during part add)" 'between agents: it'
	said "for $SILENCE_MS ms"
	await all_ended
	part del
	program works
	await all_ended
}
