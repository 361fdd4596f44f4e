"""The highest rate that a transport sustains, found in few runs on a ladder of rates; and the next number of streams to try."""

import math

FIRST_MBPS = 100  # of rung 0
STEP = 1.05       # from a rung to the next
STRIDE = 4        # rungs of the first jump where nothing is known: a fifth
RUNS = 6          # of a search, at most


def mbps_of(rung):
    return FIRST_MBPS * STEP ** rung


def rung_below(mbps):
    """The highest rung of at most `mbps`."""
    return max(0, math.floor(math.log(max(mbps, FIRST_MBPS) / FIRST_MBPS, STEP) + 1e-9))


def climb(attempt, start, stride=STRIDE, runs=RUNS):
    """(the highest rung found to hold, what attempt() gave there), (None, None) where none did. `attempt(rung)` gives something where
    the rung holds, and None where it does not. Jumps that double until one rung holds and a higher one does not; then halves what is
    between them. Never more than `runs` attempts, so that the answer may be lower than what holds, but never higher."""
    good, bad, found, rung = None, None, None, start
    for _ in range(runs):
        result = attempt(rung)
        if result is not None:
            good, found = rung, result
        else:
            bad = rung
        if bad is None:
            rung, stride = good + stride, 2 * stride
        elif good is None:
            if bad == 0:
                break
            rung, stride = max(0, bad - stride), 2 * stride
        elif bad - good == 1:
            break
        else:
            rung = (good + bad) // 2
    return good, found


def between(held, runs):
    """The number to try next, of those between the largest that held before the first that did not, and that one: the middle. Where
    these are neighbours, the one that was run less often. None where nothing broke, or nothing held. `held`: {number: whether it held
    so far}; `runs`: {number: how often it was run}."""
    good = None
    for number in sorted(held):
        if held[number]:
            good = number
            continue
        if good is None:
            return None
        return (good + number) // 2 if number - good > 1 else min((good, number), key=runs.get)
    return None
