/* SPDX-License-Identifier: MIT */
/*
 * The turn of hot calls, counted calls, loss and stop: src/rig/submit.c, wait.c and loss.c of one device.
 * Two threads submit, one makes a counted call that may fault, one loses the device (a hang, say) and one
 * waits for its end.
 *
 * Checked: hot calls come one at a time; none, and no counted call, is in flight when stop runs or after it;
 * stop runs once if the device is lost, and never otherwise; the last value judged is the last handed over;
 * nobody sleeps for ever.
 *
 * Variants, by macros:
 *	MAY_BLOCK	the driver may block: the lock is dropped around hot calls, and the turn keeps them apart
 *	NO_TURN		without the turn (must fail with MAY_BLOCK)
 *	NO_COUNT	without counting the hot call among those that stop waits for (must fail with MAY_BLOCK)
 *	NO_NOTIFY	giving the turn tells nobody (must fail with MAY_BLOCK)
 */
#define SUBMITS 2
#define OPEN    255 /* the last value is not known: a turn is in flight */

mtype = { LIVE, LOSING, OWED, STOPPING, ENDED };

mtype life = LIVE;
bool locked;
bool turn;
byte inflight;
byte count, waiters;    /* the event `changed` */
byte submitted, last;
byte hot, cold;         /* calls in the driver now */
byte stops;
byte done;

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

inline notify()
{
	if
	:: waiters > 0 -> count++
	:: else
	fi
}

/* Sleeps only if nothing was told since the lock was held. */
inline await(seen)
{
	seen = count;
	waiters++;
	unlock();
	count != seen;
	lock();
	waiters--
}

inline set_life(to)
{
	life = to;
	notify()
}

inline run_stop()
{
	assert(life == OWED && inflight == 0);
	set_life(STOPPING);
	unlock();
	assert(stops == 0 && hot == 0 && cold == 0);
	stops++;
	lock();
	last = submitted;
	set_life(ENDED);
	unlock()
}

/* With the lock, which it drops. */
inline leave()
{
	inflight--;
	if
	:: inflight == 0 && life == OWED -> run_stop()
	:: else -> unlock()
	fi
}

inline lose_locked(mine)
{
	if
	:: life == LIVE ->
		last = (turn -> OPEN : submitted);
		set_life(LOSING);
		mine = true
	:: else -> mine = false
	fi
}

/* Without the lock: who waits for the device in a queue is told before this point. */
inline lose_finish()
{
	lock();
	set_life(OWED);
	if
	:: inflight == 0 -> run_stop()
	:: else -> unlock()
	fi
}

inline hot_call()
{
#ifdef MAY_BLOCK
	unlock();
#endif
	hot++;
	assert(hot == 1 && stops == 0);
	hot--;
#ifdef MAY_BLOCK
	lock()
#endif
}

proctype submitter()
{
	byte n, seen;
	bool mine;

	do
	:: n == SUBMITS -> break
	:: else ->
		n++;
		mine = false;
		lock();
#ifdef MAY_BLOCK
#ifndef NO_TURN
		do
		:: turn && life == LIVE -> await(seen)
		:: else -> break
		od;
#endif
#endif
		if
		:: life != LIVE -> unlock(); break
		:: else
		fi;
#ifdef MAY_BLOCK
		turn = true;
#ifndef NO_COUNT
		inflight++;
#endif
#endif
		hot_call();     /* room */
		if
		:: life == LIVE ->
			submitted++;
			hot_call(); /* submit */
			if
			:: skip
			:: lose_locked(mine) /* it failed */
			fi
		:: else
		fi;
#ifdef MAY_BLOCK
		turn = false;
#ifndef NO_NOTIFY
		notify();
#endif
#ifndef NO_COUNT
		leave();
#else
		unlock();
#endif
#else
		unlock();
#endif
		if
		:: mine -> lose_finish(); break
		:: else
		fi
	od;
	done++
}

active proctype counted_call()
{
	bool mine;

	lock();
	if
	:: life != LIVE -> unlock()
	:: else ->
		inflight++;
		unlock();
		cold++;
		assert(stops == 0);
		cold--;
		if
		:: skip
		:: lock(); lose_locked(mine); unlock(); /* it faulted */
			if
			:: mine -> lose_finish()
			:: else
			fi
		fi;
		lock();
		leave()
	fi;
	done++
}

active proctype loser()
{
	bool mine;

	if
	:: skip
	:: lock(); lose_locked(mine); unlock();
		if
		:: mine -> lose_finish()
		:: else
		fi
	fi;
	done++
}

/* Waits for the end of a device that is being lost. */
active proctype closer()
{
	byte seen;

	life != LIVE || done == 4;
	lock();
	do
	:: life != LIVE && life != ENDED -> await(seen)
	:: else -> break
	od;
	unlock();
	done == 4;
	assert(life == LIVE || life == ENDED);
	assert(stops == (life == ENDED -> 1 : 0));
	assert(life == LIVE || last == submitted);
	assert(!turn && inflight == 0)
}

init {
	atomic { run submitter(); run submitter() }
}
