"""Intervals: what a median, or the median of paired differences, would have been in other runs like this one (bootstrap)."""
import random
import statistics

RESAMPLES = 500


def middle(drawn):
    """Of 100 such figures the middle 95."""
    drawn = sorted(drawn)
    return drawn[int(RESAMPLES * 0.025)], drawn[int(RESAMPLES * 0.975) - 1]


def drawn_from(values):
    return random.choices(values, k=len(values))


def interval(values, of=statistics.median):
    return middle(of(drawn_from(values)) for _ in range(RESAMPLES))


def between(of, values, others, compare):
    """compare(of(values), of(others)) of two kinds that took turns but are no pairs, and its interval."""
    return compare(of(values), of(others)), middle(compare(of(drawn_from(values)), of(drawn_from(others)))
                                                   for _ in range(RESAMPLES))


def compared(pairs):
    """Of (new, old) pairs that took turns: the median of the quotients, that of the differences, each with its interval."""
    quotients = [new / old for new, old in pairs]
    differences = [new - old for new, old in pairs]
    return {'share': statistics.median(quotients), 'share_interval': interval(quotients),
            'difference_ms': statistics.median(differences), 'difference_interval': interval(differences)}
