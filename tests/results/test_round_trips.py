"""A copy that declared delays keep below its quota is no failure of the quota; one that exceeds it is."""

from dataclasses import replace

import pytest

from results.contract.move import Fetchers, Flow, RoundTrip
from results.contract.verdict import overall
from results.criteria import judge
from results.criteria.pace import pace
from tests.results.judged import named
from tests.results.moves import simulate
from tests.results.scenes import two_node

SLOW = simulate(two_node(real_quota=(("b2", 0.0, 999.0, 7e6),), told_quota=False))
FAST = simulate(two_node(real_quota=(("b1", 0.0, 999.0, 11e6), ("b2", 0.0, 999.0, 11e6)), told_quota=False))
LOW = ("steady-mean", "rate-after-throttle-change", "first-window", "duration-model")


def judged(run, seconds):
    """The run between hosts with such a round trip, in which 128 KiB come."""
    trips = (RoundTrip("b1", "b2", seconds, 131_072),) if seconds else ()
    move = replace(run.manifest.move, round_trips=trips)
    return judge(replace(run.manifest, criteria=LOW, move=move), run.samples, run.events)


def verdicts(judgement):
    return {name: overall(named(judgement, name)) for name in LOW}


def test_without_a_delay_or_with_a_short_one_a_rate_below_the_quota_fails():
    for seconds in (0.0, 0.013):
        assert verdicts(judged(SLOW, seconds)) == dict.fromkeys(LOW, "fail")


def test_a_rate_that_the_delay_allows_no_more_than_is_left_open_with_the_figures():
    judgement = judged(SLOW, 0.016)
    assert verdicts(judgement) == dict.fromkeys(LOW, "inconclusive")
    said = (
        "round trips of up to 16 ms, which the topology declares, allow at most 8.192 MB/s there: "
        "less than the quota of 10 MB/s"
    )
    assert all(each.why.startswith(said) for each in named(judgement, "steady-mean"))
    assert "of the quota" in named(judgement, "steady-mean")[0].why
    assert named(judgement, "duration-model")[0].why == said


def test_more_than_the_quota_fails_whatever_the_delay_is():
    assert verdicts(judged(FAST, 0.016))["steady-mean"] == "fail"


def test_the_pace_of_a_host_is_that_of_all_its_fetchers_and_unlimited_where_one_of_them_is():
    move = replace(
        SLOW.manifest.move,
        brokers=("b1", "b2", "b3"),
        flows=tuple(Flow("throttled", "t", (n,), leader, "b2") for n, leader in enumerate(("b1", "b3"))),
        fetchers={"b2": Fetchers(0, 4)},
        expected=(),
        round_trips=(RoundTrip("b1", "b2", 0.01, 1000), RoundTrip("b3", "b2", 0.02, 1000)),
    )
    assert pace(move, "b2", "receive") == pytest.approx(2 * 1000 / 0.01 + 2 * 1000 / 0.02)
    assert pace(move, "b1", "transmit") == pytest.approx(2 * 1000 / 0.01)
    assert pace(replace(move, round_trips=move.round_trips[:1]), "b2", "receive") == float("inf")
    assert pace(move, "b1", "receive") == float("inf")
