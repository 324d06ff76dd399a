/* SPDX-License-Identifier: MIT */
/*
 * How waiters and the poller sleep and wake: src/driver/progress.c, with the completion interrupt of
 * docs/rvx1.md section 9. A device completes VALUES values or fails on the way; waiters look themselves, or
 * block.
 *
 * Checked: no waiter sleeps for ever (an invalid end state), the word never goes back or past the device's
 * value, and a waiter that answers a fault does so for a value that was not reached.
 *
 * Stores and counts may be seen late: each process has a buffer of one store that is written back at any
 * time, and a full fence waits for it. Variants, by macros:
 *	STORE		the device writes the word by DMA, before its value register; the host never raises it
 *	LOST_IRQ	interrupts may be lost; the poller's timeout covers that
 *	EDGE		a board that interrupts when a value completes, and not when it is armed after that
 *	NO_FENCE	without the fences (must fail)
 *	NO_LOOK		the poller does not look again after it armed: needed by EDGE alone
 *	NO_FIRST_WAKE	the poller's first look wakes nobody, though a waiter may have slept before (must fail)
 */
#define VALUES  2
#define WAITERS 2
#define TIMEOUTS (2 * VALUES + 2) /* bounded, so that the search ends */

byte value;             /* the device's register */
byte word;              /* what waiters wait for */
byte arm;               /* interrupt when value exceeds it */
bool armed = true;      /* not raised yet for this arm */
bool irq;               /* the interrupt's eventfd */
bool failed;            /* the device's fault flag */
bool faulted;           /* what the host made of it */
bool locked;
byte sleepers;          /* as others see it */
byte calls[WAITERS];    /* broadcasts that a waiter in the condition has not seen */
bool in_wait[WAITERS];
byte timeouts;

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

/* The poller's buffered raise of the word; 0: none. */
byte raise_buffer;
/* The waiters' buffered changes of the count of sleepers. */
byte enter_buffer[WAITERS];

inline flush_raise()
{
	atomic {
		if
		:: raise_buffer > word -> word = raise_buffer
		:: else
		fi;
		raise_buffer = 0
	}
}

inline broadcast()
{
	atomic {
		if
		:: in_wait[0] -> calls[0] = 1
		:: else
		fi;
		if
		:: in_wait[1] -> calls[1] = 1
		:: else
		fi
	}
}

active proctype device()
{
	byte next = 1;
end:	do
	:: next <= VALUES && !failed -> atomic {
#ifdef STORE
			word = next;
		}
		atomic {
#endif
			value = next;
			next++;
#ifdef EDGE
			if
			:: armed && value > arm -> armed = false; irq = true
			:: else
			fi
#endif
		}
	:: next <= VALUES && !failed -> failed = true; irq = true
#ifndef EDGE
	:: atomic { armed && value > arm -> armed = false;
#ifdef LOST_IRQ
			if
			:: irq = true
			:: skip
			fi
#else
			irq = true
#endif
		}
#endif
	od
}

/* The processor writes the poller's raise back whenever it likes. */
active proctype write_back()
{
end:	do
	:: raise_buffer != 0 -> flush_raise()
	:: atomic { enter_buffer[0] == 1 -> sleepers++; enter_buffer[0] = 0 }
	:: atomic { enter_buffer[1] == 1 -> sleepers++; enter_buffer[1] = 0 }
	od
}

/* In the poller: sees the value, raises the word, and answers the word as this thread sees it. */
inline look(seen_now)
{
	atomic {
		seen_now = value;
#ifndef STORE
		if
		:: seen_now > word && seen_now > raise_buffer -> raise_buffer = seen_now
		:: else
		fi;
#endif
		seen_now = (raise_buffer > word -> raise_buffer : word)
	}
}

inline wake()
{
#ifndef NO_FENCE
	raise_buffer == 0;      /* the full fence */
#endif
	if
	:: sleepers == 0
	:: else -> lock(); broadcast(); unlock()
	fi
}

inline check_fault()
{
	if
	:: failed && !faulted -> lock(); faulted = true; broadcast(); unlock()
	:: else
	fi
}

active proctype poller()
{
	byte seen, now;

	look(seen);
#ifndef NO_FIRST_WAKE
	wake();
#endif
	do
	:: true ->
		atomic {
			if
			:: arm != seen -> arm = seen; armed = true
			:: else
			fi
		}
#ifndef NO_LOOK
		look(now);
		check_fault();
		if
		:: now != seen || faulted -> irq = false
		:: else ->
#else
		if
		:: true ->
#endif
end:			if
			:: irq -> irq = false
#ifdef LOST_IRQ
			:: timeout && timeouts < TIMEOUTS -> timeouts++
#endif
			fi
		fi;
		check_fault();
		if
		:: faulted -> break
		:: else
		fi;
		look(seen);
		wake()
	od;
	look(seen)
}

proctype waiter(byte me)
{
	byte seen;

	do
	:: true ->
		seen = word;
		if
		:: seen == VALUES -> break
		:: else
		fi;
#ifndef STORE
		if      /* It looks itself for a while: a compare-and-swap, seen at once. */
		:: atomic {
				if
				:: value > word -> word = value
				:: else
				fi
			}
		:: skip
		fi;
#endif
		lock();
		enter_buffer[me] = 1;
#ifndef NO_FENCE
		enter_buffer[me] == 0;  /* the full fence */
#endif
		do
		:: word == seen && !faulted ->
			atomic { in_wait[me] = true; calls[me] = 0; unlock() };
			/* The processor's buffers empty in the kernel, which is entered to sleep. */
			calls[me] == 1;
			in_wait[me] = false;
			lock()
		:: else -> break
		od;
		enter_buffer[me] == 0;
		sleepers--;
		unlock();
		if
		:: faulted && word == seen ->
			/* It judges by one more look. */
#ifndef STORE
			atomic {
				if
				:: value > word -> word = value
				:: else
				fi
			};
#endif
			if
			:: word == seen -> assert(value < VALUES); break
			:: else
			fi
		:: else
		fi
	od
}

/* The word is only what the device completed, and never less than it was. */
active proctype watch()
{
	byte last;
end:	do
	:: atomic { word > last -> assert(word <= VALUES); last = word }
	:: atomic { word < last -> assert(false) }
#ifndef STORE
	:: atomic { word > value -> assert(false) }
#endif
	od
}

init {
	atomic { run waiter(0); run waiter(1) }
}
