"""The order of runs, which depends on the number of variants and repeats, and on a seed. Pure.

A *block* runs every variant once; the runs of a block are compared with each other. Two blocks make a round, and the
second one has the reverse order (A B, B A), so that a steady drift favours no variant. The seed gives the order of the
variants, and each round starts one variant later. After as many rounds as variants, each variant has stood at each
place equally often.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, groupby, zip_longest
from operator import attrgetter


@dataclass(frozen=True, slots=True)
class Slot:
    """One run to be made; `index` and `block` count from 0 over the campaign, group by group."""

    index: int
    block: int
    variant: str


def schedule(variants: Sequence[str], repeats: int, seed: int) -> tuple[Slot, ...]:
    """Return all slots in order. More repeats only append: a longer schedule begins with the shorter one.

    Raise ValueError without variants, for two variants of one name, and for less than one repeat.
    """
    if not variants:
        raise ValueError("no variants: there is nothing to schedule")
    if len(set(variants)) != len(variants):
        raise ValueError(f"variants {', '.join(variants)}: every label may be there once")
    if repeats < 1:
        raise ValueError(f"{repeats} repeats: at least 1 is needed")
    slots: list[Slot] = []
    for block, order in zip(range(repeats), _blocks(variants, seed), strict=False):
        slots += [Slot(index, block, variant) for index, variant in enumerate(order, len(slots))]
    return tuple(slots)


@lru_cache(maxsize=16)  # a campaign asks for its slots before each run, several times
def grouped(
    groups: tuple[tuple[tuple[str, ...], int], ...], seed: int, interleaved: tuple[int, ...] = ()
) -> tuple[Slot, ...]:
    """Return the slots of several groups (variants, repeats), one group after the other; slots and blocks count on.

    The blocks of every second group are in reverse order, so that no version comes first in all groups. The groups
    with the numbers `interleaved` come last, in turns: a turn has one block of each, in random order. So a slow drift,
    and a lack of time, affect all of them alike. Raise ValueError as `schedule` does.
    """
    slots: list[Slot] = []
    in_turn: list[list[list[Slot]]] = []
    first = blocks = 0
    for number, (variants, repeats) in enumerate(groups):
        own = schedule(variants, repeats, seed)
        own = tuple(replace(slot, index=first + slot.index, block=blocks + slot.block) for slot in own)
        first, blocks = first + len(own), blocks + repeats
        ordered = [[*block][:: -1 if number % 2 else 1] for _number, block in groupby(own, attrgetter("block"))]
        if number in interleaved:
            in_turn.append(ordered)
        else:
            slots += chain.from_iterable(ordered)
    for turn, present in enumerate(zip_longest(*in_turn, fillvalue=[])):
        for block in random.Random(f"{seed}/turn {turn}").sample(present, len(present)):
            slots += block
    return tuple(slots)


def _blocks(variants: Sequence[str], seed: int) -> Iterator[tuple[str, ...]]:
    """Yield the order within each block, without end."""
    count, turn = len(variants), 0
    while True:
        # A text seed gives the same order in every process and on every machine.
        order = random.Random(f"{seed}/{turn}").sample(list(variants), count)
        for shift in range(count):
            there = (*order[shift:], *order[:shift])
            yield there
            yield there[::-1]
        turn += 1
