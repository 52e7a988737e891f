from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.runner.schedule import grouped, schedule

labels = st.integers(1, 6).map(lambda count: [f"v{n}" for n in range(count)])


def orders(slots):
    """The variants of each block, in order."""
    found = {}
    for slot in slots:
        found.setdefault(slot.block, []).append(slot.variant)
    return list(found.values())


def test_two_variants_are_interleaved_abba():
    text = "".join(slot.variant for slot in schedule("AB", 8, seed=1))
    rounds = [text[i : i + 4] for i in range(0, len(text), 4)]
    assert set(rounds) == {"ABBA", "BAAB"}


@given(labels, st.integers(1, 20), st.integers())
def test_every_block_has_every_variant_once_and_every_second_is_the_mirror_of_the_one_before(variants, repeats, seed):
    found = orders(schedule(variants, repeats, seed))
    assert len(found) == repeats
    assert all(sorted(order) == sorted(variants) for order in found)
    for first, second in zip(found[::2], found[1::2], strict=False):
        assert second == first[::-1]


@given(labels, st.integers())
def test_over_whole_turns_each_variant_stands_at_each_place_equally_often(variants, seed):
    found = orders(schedule(variants, 2 * len(variants), seed))
    assert set(Counter(each for order in found for each in enumerate(order)).values()) == {2}


@given(labels, st.integers(1, 12), st.integers(0, 12), st.integers())
def test_more_repeats_only_append(variants, repeats, more, seed):
    short, long = schedule(variants, repeats, seed), schedule(variants, repeats + more, seed)
    assert long[: len(short)] == short


def test_the_schedule_is_a_function_of_its_arguments_and_the_seed_matters():
    assert schedule("ABC", 6, 3) == schedule("ABC", 6, 3)
    assert len({tuple(s.variant for s in schedule("ABCD", 4, seed)) for seed in range(20)}) > 5
    # Written down: a change of the order would make a resumed campaign a different one.
    assert "".join(slot.variant for slot in schedule("ABC", 4, 73)) == "CBAABCBACCAB"


def test_a_steady_drift_favours_nobody_over_whole_rounds():
    slots = schedule("AB", 10, 5)
    mean = {label: sum(s.index for s in slots if s.variant == label) / 10 for label in "AB"}
    assert mean["A"] == mean["B"]


@pytest.mark.parametrize(("variants", "repeats"), [([], 1), (["A", "A"], 1), (["A"], 0)])
def test_refusals(variants, repeats):
    with pytest.raises(ValueError):
        schedule(variants, repeats, 1)


@given(st.lists(st.tuples(labels.map(tuple), st.integers(1, 6)), min_size=1, max_size=4), st.integers(), st.data())
def test_groups_that_take_turns_have_the_same_slots_and_as_many_blocks_at_any_time(groups, seed, data):
    """The numbers of the slots stay, so that a journal of an earlier version is resumed with the same runs."""
    groups = tuple((tuple(f"{number}{each}" for each in labels), n) for number, (labels, n) in enumerate(groups))
    some = tuple(data.draw(st.sets(st.integers(0, len(groups) - 1))))
    turns = grouped(groups, seed, some)
    earlier = [slot.variant for labels, n in groups for slot in schedule(labels, n, seed)]
    assert [slot.variant for slot in sorted(turns, key=lambda slot: slot.index)] == earlier
    assert [slot.index for slot in sorted(turns, key=lambda slot: slot.index)] == list(range(len(earlier)))
    blocks = list(dict.fromkeys((slot.block, int(slot.variant[0])) for slot in turns))
    runs = ["".join(str(slot.block) for slot in turns if slot.block == block) for block, _group in blocks]
    assert "".join(runs) == "".join(str(slot.block) for slot in turns)  # a block is not torn apart
    alone = [group for _block, group in blocks if group not in some]
    assert alone == sorted(alone) and [group for _block, group in blocks][: len(alone)] == alone
    for end in range(len(alone), len(blocks)):
        made = {number: sum(group == number for _block, group in blocks[:end]) for number in some}
        most = max(made.values())
        assert all(count >= min(most - 1, groups[number][1]) for number, count in made.items())


def test_no_variant_is_the_first_in_all_groups():
    """All groups have the same seed, and most scenarios of a qualification are run once."""
    slots = grouped(tuple(((f"{n}new", f"{n}old"), 3) for n in range(8)), 1)
    firsts = [slots[place].variant[1:] for place in range(0, 48, 6)]
    assert Counter(firsts) == {"new": 4, "old": 4}


def test_the_order_of_turns_differs():
    order = [slot.variant for slot in grouped(((("A",), 12), (("B",), 12)), 1, (0, 1))]
    turns = {tuple(order[first : first + 2]) for first in range(0, 24, 2)}
    assert turns == {("A", "B"), ("B", "A")}
