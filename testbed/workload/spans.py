"""Spans of places: sets of whole numbers as pairs. Pure."""

from collections.abc import Iterable

Span = tuple[int, int]
"""Places from the first up to, but excluding, the second."""


def spans(places: Iterable[int]) -> tuple[Span, ...]:
    """Return places in any order as spans."""
    return merged((place, place + 1) for place in places)


def merged(several: Iterable[Span]) -> tuple[Span, ...]:
    """Return spans in any order, which may overlap, as the fewest spans in order."""
    found: list[Span] = []
    for begin, end in sorted(several):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif begin < end:
            found.append((begin, end))
    return tuple(found)


def count(several: Iterable[Span]) -> int:
    """Return the number of places in the spans."""
    return sum(end - begin for begin, end in several)


def less(several: Iterable[Span], others: Iterable[Span]) -> tuple[Span, ...]:
    """Return the places of the first spans that are not in the others."""
    found, taken, first = [], merged(others), 0
    for begin, end in merged(several):
        while first < len(taken) and taken[first][1] <= begin:
            first += 1
        at, left = first, begin
        while at < len(taken) and taken[at][0] < end:
            if left < taken[at][0]:
                found.append((left, taken[at][0]))
            left = taken[at][1]
            at += 1
        if left < end:
            found.append((left, end))
    return tuple(found)


def common(several: Iterable[Span], others: Iterable[Span]) -> tuple[Span, ...]:
    """Return the places that are in both."""
    one = merged(several)
    return less(one, less(one, others))
