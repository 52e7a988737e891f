"""One listed partition of the hundred that is not held back is found; partitions that take turns are not."""

from dataclasses import replace

import numpy as np
import pytest

from results.contract.move import Fetchers
from results.criteria.criterion import has_move
from results.criteria.judgement import catalogue
from results.criteria.run_view import RunView
from tests.results.synthetic import EPOCH, MIB, Options, Sample, samples_table, synthetic_run

CRITERION = catalogue()["listed-partitions-throttled"]
PARTITIONS, SIZE, RATE = 100, 5.2e6, 10e6


def turns(seed, *, ahead=(), shuffled=True):
    """Partitions' bytes over time: a response each in turn; those `ahead` are copied in the first second.

    The first partition may have a second turn at once, as the first responses reorder the partitions.
    """
    rng = np.random.default_rng(seed)
    order = list(rng.permutation([p for p in range(PARTITIONS) if p not in ahead]))
    copied = dict.fromkeys(range(PARTITIONS), 0.0)
    t, found = 0.3, []
    if shuffled:
        order.insert(1, order[0])
    while order:
        p = order.pop(0)
        size = min(MIB * (1 - 0.016 * rng.random()), SIZE - copied[p])
        copied[p] += size
        t += size / RATE * rng.uniform(0.5, 1.5)
        found.append((t, p, copied[p]))
        if copied[p] < SIZE and p not in order:
            order.append(p)
    return [*((0.3 + 0.2 * i, p, SIZE) for i, p in enumerate(ahead)), *found]


def run_of(steps, **changes):
    plain = synthetic_run(Options(partitions=1, log_bytes=20e6))
    move = plain.manifest.move
    [flow] = [each for each in move.flows if each.kind == "throttled"]
    flows = (replace(flow, partitions=tuple(range(PARTITIONS))),)
    move = replace(move, flows=flows, total_log_bytes=int(PARTITIONS * SIZE), **changes)
    end = max(t for t, _, _ in steps)
    us = round(EPOCH.timestamp() * 1e6)
    samples = [Sample(us - 500_000, "b1", "log.bytes", SIZE, "moving", p) for p in range(PARTITIONS)]
    for t in np.arange(0.4, end + 2, 0.99):
        latest = {p: size for at, p, size in sorted(steps) if at <= t}
        samples.append(Sample(us + round(t * 1e6), "b2", "nic.rx.bytes", 0.0, label="data0"))
        samples += [Sample(us + round(t * 1e6), "b2", "log.bytes", s, "moving", p) for p, s in latest.items()]
    events = plain.events.filter([kind == "move.started" for kind in plain.events["kind"].to_pylist()])
    manifest = replace(plain.manifest, move=move)
    return RunView(manifest, samples_table(samples), events)


def judged(run):
    assert has_move(run)
    [found] = CRITERION.findings(run)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_partitions_that_take_turns_pass(seed):
    found = judged(run_of(turns(seed)))
    assert found.verdict == "pass", found.why
    assert found.observed <= 2 * MIB


@pytest.mark.parametrize("ahead", [(17,), (0, 99), tuple(range(20, 40))])
def test_a_partition_that_is_not_held_back_fails_and_is_named(ahead):
    found = judged(run_of(turns(1, ahead=ahead)))
    assert found.verdict == "fail"
    assert found.why.split()[0] in {f"moving-{p}" for p in ahead}
    assert found.observed == pytest.approx(SIZE)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"response_max_bytes": 2 * MIB}, "a partition has 5.2 MB: it must be larger than 3 responses, 6.291 MB"),
        ({"fetchers": {}}, "the manifest names no fetcher of b2"),
        (
            {"fetchers": {"b1": Fetchers(2, 0), "b2": Fetchers(0, 2)}},
            "a follower has several fetchers for one leader, and each has turns of its own",
        ),
    ],
)
def test_where_settings_do_not_allow_it_the_reason_is_given(changes, why):
    assert CRITERION.skips(run_of(turns(0), **changes)) == why


@pytest.mark.parametrize(("partitions", "skips"), [(2, True), (3, False)])
def test_a_move_of_two_partitions_is_skipped_and_not_left_open(partitions, skips):
    """`partitions=2` is allowed: the criterion made every such run inconclusive."""
    run = run_of(turns(0))
    move = run.manifest.move
    flows = tuple(replace(flow, partitions=tuple(range(partitions))) for flow in move.flows)
    move = replace(move, flows=flows, total_log_bytes=int(partitions * SIZE))
    few = RunView(replace(run.manifest, move=move), run._samples, run._events)
    why = "no broker copies 3 partitions or more from one other: there is no median to lead"
    assert CRITERION.skips(few) == (why if skips else None)


def test_without_logs_it_says_nothing():
    run = run_of(turns(0))
    empty = RunView(run.manifest, samples_table([]), run._events)
    assert judged(empty).verdict == "inconclusive"
