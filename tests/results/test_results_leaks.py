"""Throttles that leak, on either side, are found by one run; healthy ones never fail, however responses are timed."""

import math
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pytest

from results.contract.move import Fetchers
from results.contract.schema import CRITERIA, criteria_from_table, criteria_table
from results.contract.tables import from_parquet, to_parquet
from results.criteria import judge
from results.criteria.catalogue.broker_rate_agrees import _kafka, paired, sensor_tolerance
from results.criteria.model import raced, written_unseen
from results.criteria.quantities import US
from results.criteria.sample_series import Series
from results.criteria.sensor import predicted
from tools.fetching import LEAKS, MIB, Fetching

RATE_CRITERIA = ("steady-mean", "broker-rate-agrees", "throttled-window", "long-window-bound")
QUOTA = 10e6


def judged(make_run, fetching, **options):
    run = make_run(
        fetching=fetching,
        quota=fetching.quota,
        log_bytes=fetching.total,
        partitions=4,
        control_bytes=1.0,
        token=f"s{fetching.seed:05d}",
        **options,
    )
    return {(c.name, c.host): c for c in run.judged().criteria if c.name in RATE_CRITERIA}


def failed(found):
    return {name for name, finding in found.items() if finding.verdict == "fail"}


def timed(seed, **changes):
    """A move with response times of its own: another line, other delays, collections, batches and moments."""
    rng = np.random.default_rng(seed)
    return Fetching(
        quota=QUOTA,
        total=52 * QUOTA,
        line_bytes_per_s=float(rng.choice([46e6, 115e6])),
        delay_s=float(rng.uniform(0.0005, 0.02)),
        pause_s=float(rng.uniform(0.02, 0.2)),
        pauses_per_s=float(rng.uniform(0, 0.1)),
        torn=float(rng.choice([0.0, 0.001, 0.008, 0.02])),
        follows_more=bool(rng.random() < 0.7),
        seed=seed,
        **changes,
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_healthy_throttle_never_fails(make_run, seed):
    found = judged(make_run, timed(seed))
    assert {finding.verdict for finding in found.values()} == {"pass"}, failed(found)


@pytest.mark.parametrize("seconds", [8, 12, 15, 18, 24])
def test_a_healthy_throttle_never_fails_in_a_short_move(make_run, seconds):
    """Early readings are divided by the time since the first response, and one reading a second does not tell when."""
    for seed in range(12):
        found = judged(make_run, replace(timed(seed), total=seconds * QUOTA))
        assert failed(found) == set(), (seed, found)


LARGE = {
    "tuned, 200 kB/s": ("tuned", {"quota": 0.2e6, "response": MIB}),
    "tuned, 500 kB/s": ("tuned", {"quota": 0.5e6, "response": MIB}),
    "default, 2 MB/s": ("default", {"quota": 2e6, "response": 10 * MIB, "backoff_s": 1.0}),
    "default, 3 MB/s": ("default", {"quota": 3e6, "response": 10 * MIB, "backoff_s": 1.0}),
}
"""Responses that are worth 2 to 5 s of the throttle: more than a sample of its window."""


@pytest.mark.parametrize("seconds", [52, 120])
@pytest.mark.parametrize("fetch", LARGE)
def test_a_healthy_throttle_never_fails_with_responses_that_are_worth_more_than_a_sample(make_run, fetch, seconds):
    """Expired samples stay empty, so that the mean exceeds the quota: by 18 % at 2 MB/s, measured and simulated."""
    settings, changes = LARGE[fetch]
    for seed in range(4):
        found = judged(make_run, Fetching(total=seconds * changes["quota"], seed=seed, **changes), fetch=settings)
        assert failed(found) == set(), (seed, found)


@pytest.mark.parametrize("fetch", LARGE)
def test_a_throttle_that_lets_half_as_much_again_pass_fails_with_large_responses(make_run, fetch):
    settings, changes = LARGE[fetch]
    fetching = LEAKS["both"](Fetching(total=120 * changes["quota"], seed=1, **changes), 0.5)
    assert ("long-window-bound", "b2") in failed(judged(make_run, fetching, fetch=settings))


@pytest.mark.parametrize("leak", [0.02, 0.05, 0.10, 0.25])
@pytest.mark.parametrize("side", LEAKS)
def test_a_leak_on_either_side_is_found_by_one_run(make_run, side, leak):
    found = judged(make_run, LEAKS[side](timed(round(1000 * leak)), leak))
    wrong = failed(found)
    hosts = {"leader": {"b1"}, "follower": {"b2"}, "both": {"b1", "b2"}}[side]
    assert {host for name, host in wrong if name == "broker-rate-agrees"} == hosts
    if side == "both":
        assert {("steady-mean", "b1"), ("steady-mean", "b2")} <= wrong
    ratio = found["broker-rate-agrees", min(hosts)].observed
    assert ratio == pytest.approx(1 / (1 + leak), abs=0.01)


@pytest.mark.parametrize("leak", [0.10, 0.5, 1.0, 3.0])
def test_a_leak_that_ends_the_move_too_soon_fails_and_leaves_nothing_open(make_run, leak):
    found = judged(make_run, LEAKS["both"](timed(5), leak))
    assert {("steady-mean", "b2"), ("long-window-bound", "b2"), ("broker-rate-agrees", "b2")} <= failed(found)
    assert "inconclusive" not in {finding.verdict for finding in found.values()}


@pytest.mark.parametrize("side", LEAKS)
@pytest.mark.parametrize("between", [(10.0, 20.0), (20.0, math.inf)])
def test_a_leak_for_a_part_of_the_move_is_found_on_its_side(make_run, side, between):
    """4 % for ten seconds is less than 1 % of the mean of all readings, which passes."""
    found = judged(make_run, replace(LEAKS[side](timed(11), 0.04), between=between))
    hosts = {"leader": {"b1"}, "follower": {"b2"}, "both": {"b1", "b2"}}[side]
    assert {host for name, host in failed(found) if name == "broker-rate-agrees"} == hosts


def test_a_check_that_lets_more_pass_for_ten_seconds_is_found_also_by_the_brokers_own_reading(make_run):
    fetching = replace(timed(12), over=0.06, between=(10.0, 20.0))
    found = judged(make_run, fetching)
    assert failed(found) == {(name, host) for name in ("steady-mean", "long-window-bound") for host in ("b1", "b2")}
    assert "the broker itself read 1.0" in found["steady-mean", "b2"].why
    assert found["steady-mean", "b2"].observed < 1  # the mean alone shows nothing


@pytest.mark.parametrize("seconds", [52, 120])
@pytest.mark.parametrize("quota", [4e6, 10e6])
def test_a_quota_that_lets_a_whole_window_pass_at_once_fails_though_no_window_exceeds_its_bound(
    make_run, quota, seconds
):
    """What comes at line rate for two seconds of eleven is right on average, and each window is within its bound."""
    found = judged(make_run, replace(timed(14), quota=quota, total=seconds * quota, filled=True))
    assert {("long-window-bound", "b1"), ("long-window-bound", "b2")} <= failed(found)
    assert found["throttled-window", "b2"].verdict == "pass"
    assert " s, of which the quota allows " in found["long-window-bound", "b2"].why


@pytest.mark.parametrize("fetch", ["tuned", "default"])
def test_the_fullest_time_from_the_start_is_within_the_bound_of_a_healthy_throttle(make_run, fetch):
    changes = {} if fetch == "tuned" else {"response": 10 * MIB, "backoff_s": 1.0}
    for seed in range(6):
        fetching = replace(timed(seed), quota=4e6, total=52 * 4e6, **changes)
        found = judged(make_run, fetching, fetch=fetch)
        assert found["long-window-bound", "b2"].verdict == "pass", (seed, found["long-window-bound", "b2"].why)


@pytest.mark.parametrize(
    ("windows", "hosts"),
    [
        ({"leader_window": 5, "follower_window": 5}, {"b1", "b2"}),
        ({"leader_window": 22, "follower_window": 22}, {"b1", "b2"}),
        ({"follower_window": 5}, {"b2"}),
        ({"leader_window": 5}, {"b1"}),
    ],
)
def test_a_window_of_another_length_shows_when_the_copy_has_ended(make_run, windows, hosts):
    found = judged(make_run, replace(timed(13), **windows))
    assert {host for name, host in failed(found) if name == "broker-rate-agrees"} == hosts
    for host in hosts:
        assert "when the copy has ended" in found["broker-rate-agrees", host].why


def test_fetchers_that_go_on_together_may_make_a_sensor_read_more(make_run):
    run = make_run()
    [rates] = [each for each in run.judged().measures.rates if each.direction == "receive"]
    move = run.manifest.move
    assert paired(rates, move) == 0
    two = replace(move, fetchers={"b2": Fetchers(0, 2)})
    assert paired(rates, two) == pytest.approx(MIB / (10 * rates.kafka.bytes_per_s))
    high = replace(rates, kafka=replace(rates.kafka, ratio=1 + sensor_tolerance(rates, move) + 0.005))
    assert [_kafka(high, each, False).verdict for each in (move, two)] == ["fail", "pass"]


def test_what_was_fetched_again_counts_as_recorded(make_run):
    """A leak of 2 % behind large batches: the logs grow by less than the quota, the broker's counter tells."""
    fetching = LEAKS["both"](replace(timed(3), torn=0.03, quota=QUOTA), 0.02)
    steady = judged(make_run, fetching)["steady-mean", "b2"]
    assert steady.observed < 1
    assert steady.verdict == "fail", steady.why


def test_what_passed_states_what_would_have_failed(make_run):
    fetching = timed(4)
    found = judged(make_run, fetching)
    for finding in found.values():
        assert finding.power is not None
        assert f"from {finding.power.value:.3f} × " in finding.power.text
    steady, sensor = found["steady-mean", "b2"].power.value, found["broker-rate-agrees", "b2"].power.value
    assert 1 < steady < 1.02
    assert 1 < sensor < 1.02
    # It is true: a leak a little larger than both fails.
    assert failed(judged(make_run, LEAKS["both"](fetching, max(steady, sensor) - 1 + 0.003)))


def test_a_power_is_stored_and_runs_without_one_are_read(make_run):
    criteria = list(make_run().judged().criteria)
    table = criteria_table(criteria)
    assert criteria_from_table(table) == criteria
    assert any(each.power for each in criteria)
    older = to_parquet("run", table.drop_columns([name for name in table.column_names if name.startswith("power")]))
    again = criteria_from_table(from_parquet(older, "run", CRITERIA, "criteria"))
    assert again == [replace(each, power=None) for each in criteria]


def test_under_load_what_the_quota_does_not_check_is_allowed_for(make_run):
    move = replace(make_run().manifest.move, inbound_bytes_per_s=500e3)
    assert raced(move, "b2", "receive") == pytest.approx(500e3 * MIB / 10e6)
    assert written_unseen(move, "b2", "receive") == 1e6
    quiet = replace(move, inbound_bytes_per_s=0.0)
    assert raced(quiet, "b2", "receive") == written_unseen(quiet, "b2", "receive") == 0
    assert raced(replace(quiet, fetchers={"b2": Fetchers(0, 3)}), "b2", "receive") == 2 * MIB


def test_a_counter_that_counts_no_reassignment_says_nothing(make_run):
    """Where no reassignment adds the replica the counter stays 0: that is not *nothing was fetched again*."""
    run = make_run()
    counts = pc.starts_with(run.samples["metric"], "broker.reassignment.")
    silent = pc.if_else(counts, 0.0, run.samples["value"])
    samples = run.samples.set_column(run.samples.column_names.index("value"), "value", silent)
    seen, unseen = (
        {each.host: each for each in judge(run.manifest, found, run.events).measures.rates}
        for found in (run.samples, samples)
    )
    assert all(each.counted for each in seen.values())
    assert all(each.counted is None and each.refetched is None for each in unseen.values())


def test_a_sensor_begins_with_its_first_bytes_not_with_the_polls_before():
    """In a move in steps a broker may receive nothing for a minute, and is polled each second meanwhile."""
    t = np.arange(40) * US
    growth = Series(t, t, 5e6 * np.maximum(0, np.arange(40) - 20))
    read = predicted(growth, t[12:] + US // 2, 1e6)
    assert list(read[:8]) == [0] * 8
    assert np.allclose(read[9:], 5e6, rtol=0.25)
