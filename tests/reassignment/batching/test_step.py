import itertools
import random

import pytest

from testbed.reassignment.batching.step import NoStep, PartitionView, Replicas, Step, check_target, next_step

KIP = ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))


def walk(
    start: Replicas, target: Replicas, limit: int | None, *, online: range | set[int] = range(10), isr=None, minimum=1
):
    """Every replica list from `start` on, each step in sync where brokers live, and what it ends with."""
    view = PartitionView(start, target, start if isr is None else isr, minimum)
    seen = [start]
    for _ in range(50):
        step = next_step(view, online, limit)
        if not isinstance(step, Step):
            return seen, step
        seen.append(step.replicas)
        view = PartitionView(step.replicas, target, [b for b in step.replicas if b in online], minimum)
    raise AssertionError(f"no end: {seen}")


@pytest.mark.parametrize(
    ("limit", "steps"),
    [
        (2, [KIP[0], (5, 0, 1, 2, 3, 4), (5, 6, 2, 3, 4), (5, 6, 7, 8, 4), KIP[1]]),
        (
            1,
            [KIP[0], (5, 0, 1, 2, 3, 4), (5, 1, 2, 3, 4), (5, 6, 2, 3, 4), (5, 6, 7, 3, 4), (5, 6, 7, 8, 4), KIP[1]],
        ),
        (None, [KIP[0], (5, 0, 1, 2, 3, 4), KIP[1]]),
        (1, [(1, 2, 3), (4, 1, 2, 3), (4, 2, 3), (4, 5, 3), (4, 5, 6)]),
        (1, [(1, 2, 3), (1, 4, 3), (1, 4, 5)]),
        (1, [(1, 2, 3), (2, 1, 4)]),
        (1, [(1, 2, 3), (3, 2, 1)]),
        (2, [(1, 2), (1, 2, 3, 4), (1, 2, 3, 4, 5)]),
        (2, [(1, 2, 3, 4, 5), (1, 2, 5), (1, 2)]),
        (2, [(1, 2, 3), (4, 1, 2, 3), (4, 3), (4, 5)]),
        (1, [(1, 2, 3), (4, 1, 2, 3), (4, 1, 2)]),
    ],
)
def test_steps_are_those_of_the_worked_vectors(limit, steps):
    assert walk(steps[0], steps[-1], limit) == (steps, None)


def test_min_insync_replicas_are_held_first():
    assert walk((1,), (2, 3, 4), 1, minimum=3) == ([(1,), (2, 3, 1), (2, 3, 4)], None)
    found = walk((1, 2, 3), (1, 4, 5), 2, isr=(1,), minimum=3)
    assert found == ([(1, 2, 3), (1, 4, 5, 2, 3), (1, 4, 5)], None)


def test_what_is_offline_is_waited_for_and_named():
    steps, end = walk((1, 2, 3), (1, 5, 6), 2, online={1, 2, 3, 6})
    assert steps == [(1, 2, 3), (1, 6, 3)]
    assert end == NoStep("target offline: broker 5")
    steps, end = walk((1, 2, 3), (4, 5, 6), 2, online={1, 2, 3, 5, 6})
    assert steps == [(1, 2, 3)]
    assert end == NoStep("broker 4, the new preferred leader, is offline")


def oracle(current, target, isr, minimum, online, limit):
    """The rules once more, by trying out: of all that is allowed the one with most drops, then most additions."""
    if current == target:
        return None
    excess = [b for b in current if b not in target]
    new = [b for b in target if b not in current and b in online]
    if target[0] not in (*current, *online):
        return "waits"
    lacking = minimum - len(set(isr) & set(current))
    if target[0] not in current or (lacking > 0 and new):
        choices = [(0, min(len(new), max(lacking, 1)))]
    else:
        choices = [
            (dropped, added)
            for dropped in range(min(limit, len(excess)) + 1)
            for added in range(min(limit, len(new)) + 1)
            if len(current) - dropped + added >= min(len(current), len(target))
            and (added == 0 or len(current) - dropped + added <= len(target))
        ]
    dropped, added = max(choices)
    left = [b for b in current if b not in excess[:dropped]] + new[:added]
    result = tuple(sorted(left, key=lambda b: (b not in target, target.index(b) if b in target else current.index(b))))
    return "waits" if result == current else result


def compare(current, target, isr, minimum, online, limit):
    found = next_step(PartitionView(current, target, isr, minimum), online, limit)
    shown = "waits" if isinstance(found, NoStep) else found.replicas if isinstance(found, Step) else None
    assert shown == oracle(current, target, isr, minimum, online, limit), (current, target, isr, minimum, online, limit)


def test_every_small_cluster_steps_as_the_oracle_says():
    brokers = range(1, 6)
    lists = [r for n in (1, 2, 3) for r in itertools.permutations(brokers, n)]
    for current in [r for n in (1, 2, 3) for r in itertools.combinations(brokers, n)]:
        for target in lists:
            for limit in (1, 2):
                for online in (set(brokers), {1, 2, 3}, {1, 4, 5}):
                    for minimum in {1, len(target)}:
                        compare(current, target, tuple(b for b in current if b in online), minimum, online, limit)


def random_case(rng: random.Random, brokers: int, most: int):
    ids = range(brokers)
    current = tuple(rng.sample(ids, rng.randint(1, min(most, brokers))))
    target = tuple(rng.sample(ids, rng.randint(1, min(most, brokers))))
    online = set(ids) if rng.random() < 0.5 else set(rng.sample(ids, rng.randint(1, brokers)))
    isr = tuple(b for b in current if b in online and rng.random() < 0.8)
    return current, target, isr, rng.randint(1, len(target)), online, rng.choice([1, 2, 3, 99])


def check_walk(current, target, isr, minimum, online, limit):
    """The properties of a whole way: bounds of every step, nothing copied twice, and how it ends."""
    copied: set[int] = set()
    view = PartitionView(current, target, isr, minimum)
    for _ in range(60):
        step = next_step(view, online, limit)
        if not isinstance(step, Step):
            break
        in_sync = len(set(view.isr) & set(view.current))
        allowed = max(limit, minimum - in_sync, int(target[0] in step.adding))
        assert len(step.adding) <= allowed
        assert not copied & set(step.adding)
        copied |= set(step.adding)
        assert set(step.adding) <= online
        assert len(step.replicas) >= min(len(view.current), len(target))
        assert set(step.replicas) <= {*view.current, *target}
        if not set(target) - set(step.replicas) and not set(step.replicas) - set(target):
            assert step.replicas == target
        view = PartitionView(step.replicas, target, tuple(b for b in step.replicas if b in online), minimum)
    else:
        raise AssertionError("no end")
    if set(target) <= online:
        assert view.current == target
        assert step is None
    elif view.current != target:
        assert isinstance(step, NoStep)
        assert "offline" in step.reason


@pytest.mark.parametrize("count", [10_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_random_clusters_step_as_the_oracle_says_and_keep_every_bound(count):
    rng = random.Random(435)
    for _ in range(count):
        case = random_case(rng, rng.randint(1, 12), 6)
        compare(*case)
        check_walk(*case)


def test_a_target_that_makes_no_sense_is_refused():
    assert check_target((1, 2), 2) is None
    assert "empty" in str(check_target((), 1))
    assert "twice" in str(check_target((1, 1), 1))
    assert "min.insync.replicas, 3" in str(check_target((1, 2), 3))
