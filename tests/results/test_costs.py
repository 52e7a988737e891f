"""What a move cost the brokers: each measure follows its own cost, and is unknown where a reading is missing."""

from dataclasses import replace

import numpy as np
import pytest

from results.compare.compared_measures import find_measure, measures, values_of
from results.contract.schema import Sample, samples_table
from results.criteria import judge
from tests.results.relocated import Told, relocated
from tests.results.synthetic import synthetic_run, us

COSTS = ("broker-cpu-per-gb", "disk-writes", "fetches-per-gb", "metadata-requests", "metadata-records")
RATES = {
    "jvm.cpu.seconds": 0.2,
    "io.write_bytes": 5e6,
    "broker.requests FetchFollower": 6.0,
    "broker.requests Metadata": 1.0,
    "broker.metadata_offset": 2.0,
}
"""What a healthy broker counts in a second. Both brokers apply one metadata log."""
MEASURE_OF = dict(zip(RATES, COSTS, strict=True))
HOSTS = ("b1", "b2")
PARTITIONS = 110
"""The throttled ones of the synthetic run, and those of its control."""


def rows(table):
    """The samples of a table."""
    where = ("topic", "partition", "label")
    return [
        Sample(int(row["ts"].timestamp() * 1e6), row["host"], row["metric"], row["value"], *(row[n] for n in where))
        for row in table.to_pylist()
    ]


def instants(samples, host):
    """When a host was sampled, in seconds after the start of the move."""
    return sorted({(each.ts_us - us(0)) / 1e6 for each in samples if (each.host, each.label) == (host, "data0")})


def spent(samples, rates=RATES, value=lambda host, metric, t, rate: 100.0 + rate * (t + 20)):
    """What the agents of both brokers add to these samples; None from `value` is no reading."""
    for host in HOSTS:
        for t in instants(samples, host):
            for name, rate in rates.items():
                metric, _, label = name.partition(" ")
                found = value(host, name, t, rate)
                if found is not None:
                    yield Sample(us(t), host, metric, found, label=label or None)


@pytest.fixture(scope="module")
def run():
    return synthetic_run()


@pytest.fixture(scope="module")
def plain(run):
    return rows(run.samples)


@pytest.fixture
def values(run, plain):
    """A function: the costs of the run with these readings of brokers."""

    def read(**changes):
        measured = judge(run.manifest, samples_table([*plain, *spent(plain, **changes)]), run.events).measures
        return {name: found for name, found in values_of(run.manifest, measured).items() if name in COSTS}

    return read


def test_costs_in_numbers(run, values):
    found, done_s = values(), run.judged().measures.done_s
    grown = 580e6 + 260e6  # the throttled logs, and the control's
    near = {"rel": 0.04}  # each broker counts up to a second more before the move, and after it
    assert found["broker-cpu-per-gb"] == pytest.approx(2 * 0.2 * done_s / grown * 1e9, **near)
    assert found["disk-writes"] == pytest.approx(2 * 5e6 * done_s / grown, **near)
    assert found["fetches-per-gb"] == pytest.approx(2 * 6.0 * done_s / grown * 1e9, **near)
    assert found["metadata-requests"] == pytest.approx(2.0, rel=1e-6)
    assert found["metadata-records"] == pytest.approx(2.0 * done_s / PARTITIONS, rel=1e-6)


@pytest.mark.parametrize("name", RATES)
def test_a_cost_that_doubles_doubles_its_own_measure_alone(values, name):
    before, now = values(), values(rates={**RATES, name: 2 * RATES[name]})
    ratios = {measure: now[measure] / before[measure] for measure in COSTS}
    assert ratios.pop(MEASURE_OF[name]) == pytest.approx(2.0)
    assert set(ratios.values()) == {1.0}


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("missing", ["everywhere", "before", "after"])
def test_without_a_reading_a_cost_is_not_known(run, values, name, missing):
    done_s = run.judged().measures.done_s
    gone = {"everywhere": lambda t: True, "before": lambda t: t <= 0, "after": lambda t: t >= done_s}[missing]
    hosts = HOSTS if name == "broker.metadata_offset" else ("b2",)  # one broker is enough for the metadata log

    def value(host, metric, t, rate):
        return None if host in hosts and metric == name and gone(t) else 100.0 + rate * (t + 20)

    assert set(values(value=value)) == {*COSTS} - {MEASURE_OF[name]}


@pytest.mark.parametrize(("per_s", "expected"), [(3.0, 4.0), (1.0, 0.0)])
def test_opened_connections_are_those_of_both_brokers_without_the_agents(run, plain, per_s, expected):
    """An agent opens one for each of its readings, and reads once a second."""
    samples = samples_table([*plain, *spent(plain, {"tcp.opened": per_s})])
    values = values_of(run.manifest, judge(run.manifest, samples, run.events).measures)
    assert values["connections-opened"] == pytest.approx(expected, abs=0.05)
    assert "connections-opened" not in values_of(run.manifest, run.judged().measures)


def test_a_gap_in_the_middle_hides_nothing_that_was_counted(values):
    gap = lambda host, _metric, t, rate: None if host == "b2" and 20 < t < 30 else 100.0 + rate * (t + 20)  # noqa: E731
    assert values(value=gap) == pytest.approx(values())


def test_a_broker_that_starts_again_is_counted_from_0(run, values):
    """The metadata log does not begin again, and the other broker knows it."""

    def value(host, metric, t, rate):
        if host == "b1" or t < 20:
            return 100.0 + rate * (t + 20)
        if metric == "broker.metadata_offset":
            return 0.0 if t < 26 else 100.0 + rate * (t + 20)
        return None if t < 25 else rate * (t - 24)

    found, before = values(value=value), values()
    for name in ("broker-cpu-per-gb", "disk-writes", "fetches-per-gb"):
        # It was down for four seconds, and what it counted after its last reading before them is lost.
        lost_s = (1 - found[name] / before[name]) * 2 * run.judged().measures.done_s
        assert 3.8 < lost_s < 5.0, name
    assert found["metadata-records"] == pytest.approx(before["metadata-records"])


def test_counters_that_stand_still_measure_nothing(values):
    assert values(rates={**RATES, "io.write_bytes": 0.0, "broker.requests Metadata": 0.0}).keys() == {
        *COSTS
    } - {"disk-writes", "metadata-requests"}  # fmt: skip


def test_a_run_without_these_readings_has_no_costs_and_all_its_other_values(run, plain, values):
    bare = values_of(run.manifest, run.judged().measures)
    with_costs = judge(run.manifest, samples_table([*plain, *spent(plain)]), run.events)
    assert not {*COSTS} & {*bare}
    assert {
        name: found for name, found in values_of(run.manifest, with_costs.measures).items() if name not in COSTS
    } == bare
    assert with_costs.criteria == run.judged().criteria


def test_a_move_that_was_not_done_has_no_costs(run, plain):
    kept = [kind != "move.done" for kind in run.events["kind"].to_pylist()]
    measured = judge(run.manifest, samples_table([*plain, *spent(plain)]), run.events.filter(kept)).measures
    assert measured.costs is None


def test_a_tiered_log_has_no_costs(run, plain):
    manifest = replace(run.manifest, parameters={**run.manifest.parameters, "storage": "tiered"})
    assert judge(manifest, samples_table([*plain, *spent(plain)]), run.events).measures.costs is None


@pytest.mark.parametrize(("storage", "known"), [("disk", {*COSTS} - {"metadata-requests"}), ("tiered", set())])
def test_a_move_without_a_throttle(storage, known):
    manifest, samples, events = relocated("reloc0", "s3-reassign", Told(storage=storage, device=None))
    moved = rows(samples)
    times = sorted({(each.ts_us - us(0)) / 1e6 for each in moved if each.metric == "nic.rx.bytes"})
    logs = np.interp(times, [0.0, 13.2], [0.0, 300e6])
    added = [Sample(us(t), "b2", "log.bytes", size, "t", 0) for t, size in zip(times, logs, strict=True)]
    for host in HOSTS:
        for name, rate in RATES.items():
            metric, _, label = name.partition(" ")
            added += [Sample(us(t), host, metric, rate * (t + 20), label=label or None) for t in times]
    measured = judge(manifest, samples_table([*moved, *added]), events).measures
    values = values_of(manifest, measured)
    assert {*COSTS} & {*values} == known
    if known:
        assert values["metadata-records"] == pytest.approx(2.0 * 13.2 / 10)
        assert values["broker-cpu-per-gb"] == pytest.approx(0.4 * 13.2 / 0.3, rel=0.1)


def test_costs_are_compared_and_followed_from_night_to_night():
    for name in COSTS:
        measure = find_measure(name)
        assert (measure.compared, measure.only_on_request, measure.followed) == (True, False, True)
        assert measure.better == "lower"
    assert {each.name for each in measures() if each.of_amounts} == {"seconds-per-gb"}
