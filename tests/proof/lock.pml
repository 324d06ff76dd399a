/* SPDX-License-Identifier: MIT */
/*
 * The runtime's lock of one word: src/rig/lock.c and lock.h. Three threads take it twice.
 *
 * Checked: one holder at a time, and nobody sleeps for ever. Variant, by macro:
 *	TAKEN_AFTER_SLEEP	a woken thread marks the lock taken, not awaited (must fail: a sleeper is forgotten)
 */
#define THREADS 3
#define TIMES   2

mtype = { FREE, TAKEN, AWAITED };

mtype word = FREE;
byte holders, asleep;
bool wake[THREADS];     /* woken, by the thread's number */
bool sleeps[THREADS];

proctype thread(byte me)
{
	byte n;
	mtype seen;

	do
	:: n == TIMES -> break
	:: else ->
		n++;
		atomic {
			seen = word;
			if
			:: seen == FREE -> word = TAKEN
			:: else
			fi
		}
		if
		:: seen == FREE
		:: else ->
			do
			:: atomic {
					seen = word;
#ifdef TAKEN_AFTER_SLEEP
					word = (seen == FREE -> TAKEN : AWAITED)
#else
					word = AWAITED
#endif
				}
				if
				:: seen == FREE -> break
				:: else
				fi;
				/* The kernel sleeps only if the word is still what was seen. */
				atomic {
					if
					:: word == AWAITED -> sleeps[me] = true; wake[me] = false
					:: else
					fi
				}
				if
				:: sleeps[me] -> wake[me]; sleeps[me] = false
				:: else
				fi
			od
		fi;
		holders++;
		assert(holders == 1);
		holders--;
		atomic { seen = word; word = FREE }
		if
		:: seen == AWAITED -> atomic {
				if
				:: sleeps[0] && !wake[0] -> wake[0] = true
				:: sleeps[1] && !wake[1] -> wake[1] = true
				:: sleeps[2] && !wake[2] -> wake[2] = true
				:: else
				fi
			}
		:: else
		fi
	od
}

init {
	atomic { run thread(0); run thread(1); run thread(2) }
}
