/* SPDX-License-Identifier: MIT */
/*
 * Loss of a producer beside a submit that will wait for it in its queue: record in src/rig/submit.c and
 * lose_finish in loss.c, for two devices that wait for each other, each of which may be lost by itself too.
 *
 * Checked: a device whose queue waits for a value of a lost device is lost as well, and is so before stop
 * raises the word that would release its queue; each lost device is stopped once; the locks are never waited
 * for in a circle.
 *
 * Variants, by macros:
 *	NO_JUDGE	submit does not look, with the lock held, whether the producer is lost (must fail)
 *	STOP_FIRST	stop comes before those that wait are told (must fail)
 */
mtype = { LIVE, LOSING, OWED, ENDED };

mtype life[2] = LIVE;
bool dead[2];           /* published: its open values will not be reached */
bool waits[2];          /* its queue waits for the other's value */
bool locked[2], registry;
byte stops[2];
byte done;

inline lock(d) { atomic { !locked[d] -> locked[d] = true } }
inline unlock(d) { locked[d] = false }

inline lose_locked(d, mine)
{
	if
	:: life[d] == LIVE -> dead[d] = true; life[d] = LOSING; mine = true
	:: else -> mine = false
	fi
}

inline stop(d, o)
{
	lock(d);
	life[d] = OWED;
	unlock(d);
	/* The word is raised here, and a queue that waits for it goes on. */
	assert(!waits[o] || life[o] != LIVE);
	stops[d]++;
	assert(stops[d] == 1);
	life[d] = ENDED
}

/* Tells the other, which may be lost by it; then the first is stopped, then the other. */
inline lose_finish(me, other, victim)
{
#ifdef STOP_FIRST
	stop(me, other);
#endif
	atomic { !registry -> registry = true };
	lock(other);
	victim = false;
	if
	:: waits[other] -> lose_locked(other, victim)
	:: else
	fi;
	unlock(other);
	registry = false;
	/* The victim's own waiters are told next: me, which is lost already. */
	if
	:: victim -> atomic { !registry -> registry = true }; lock(me); unlock(me); registry = false
	:: else
	fi;
#ifndef STOP_FIRST
	stop(me, other);
#endif
	if
	:: victim -> stop(other, me)
	:: else
	fi
}

proctype submitter(byte self)
{
	byte peer = 1 - self;

	lock(self);
	if
	:: life[self] != LIVE
	:: else ->
#ifndef NO_JUDGE
		if
		:: dead[peer]
		:: else -> waits[self] = true
		fi
#else
		waits[self] = true
#endif
	fi;
	unlock(self);
	done++
}

proctype loser(byte self)
{
	byte peer = 1 - self;
	bool mine, victim;

	if
	:: skip
	:: lock(self); lose_locked(self, mine); unlock(self);
		if
		:: mine -> lose_finish(self, peer, victim)
		:: else
		fi
	fi;
	done++
}

init {
	atomic { run submitter(0); run submitter(1); run loser(0); run loser(1) }
	done == 4;
	assert(!(waits[0] && dead[1]) || dead[0]);
	assert(!(waits[1] && dead[0]) || dead[1]);
	assert(stops[0] == (dead[0] -> 1 : 0) && stops[1] == (dead[1] -> 1 : 0))
}
