from dataclasses import replace

import pytest

from results.compare.compared_measures import find_measure, measures, values_of
from results.criteria import judge
from tests.results.synthetic import synthetic_run

COSTS = (
    "broker-cpu-per-gb",
    "disk-writes",
    "fetches-per-gb",
    "metadata-requests",
    "metadata-records",
    "connections-opened",
)
"""Those that need samples which this run lacks: `tests/results/test_costs.py` has them."""
CLIENTS = ("produce-p50", "consume-p50")
"""Those that need clients."""
COMPARED = ("move-seconds", "seconds-per-gb", "steady-mean", "highest-11s", *COSTS, *CLIENTS)
TOLD = ("lowest-11s", "quota-bound-11s")
NAMES = (*COMPARED[: -len(CLIENTS)], *TOLD, *CLIENTS)
ASKED = (
    "cpu-per-gb",
    "busy-cores",
    "highest-1s",
    "nic-max-1s",
    "nic-mean",
    "in-flight",
    "copied",
    "under-min-isr",
    "lowest-isr",
)
"""Of those that are only asked for, what a run without clients may have."""


@pytest.fixture(scope="module")
def run():
    return synthetic_run()


def test_a_run_has_a_value_of_every_measure(run):
    measured = judge(run.manifest, run.samples, run.events).measures
    values = values_of(run.manifest, measured)
    assert tuple(measure.name for measure in measures() if not measure.only_on_request) == NAMES
    assert {*NAMES} - {*COSTS, *CLIENTS} <= {*values} <= {*NAMES, *ASKED}
    assert tuple(measure.name for measure in measures() if measure.compared and not measure.only_on_request) == COMPARED
    assert values["move-seconds"] == measured.done_s
    assert values["seconds-per-gb"] * values["copied"] == pytest.approx(measured.done_s)
    assert 0.9 < values["steady-mean"] <= 1.0
    assert values["lowest-11s"] <= values["steady-mean"] <= values["highest-11s"] < values["quota-bound-11s"] < 1.2
    assert values["highest-11s"] <= values["highest-1s"]
    load, moved = measured.load, sum(r.total_bytes for r in measured.rates if r.direction == "receive")
    assert values["cpu-per-gb"] == pytest.approx(
        load.busy_mean * run.manifest.machine.cores * measured.throttled_s / moved * 1e9
    )


def test_the_steady_mean_is_that_of_the_windows_where_there_are_any(run):
    measured = judge(run.manifest, run.samples, run.events).measures
    for windows, expected in ((0.9e6, 0.9e6), (None, 0.7e6)):
        rates = tuple(
            replace(each, steady=replace(each.steady, mean_bytes_per_s=0.7e6, window_mean_bytes_per_s=windows))
            for each in measured.rates
        )
        value = values_of(run.manifest, replace(measured, rates=rates))["steady-mean"]
        assert value == pytest.approx(expected / run.manifest.move.quota_bytes_per_s)


def test_what_could_not_be_measured_is_absent(run):
    measured = judge(run.manifest, run.samples, run.events).measures
    assert values_of(run.manifest, replace(measured, done_s=None, throttled_s=None, rates=(), burden=None)) == {}
    without = tuple(replace(rates, steady=None) for rates in measured.rates)
    known = set(values_of(run.manifest, replace(measured, rates=without))) - {*ASKED}
    assert known == {*COMPARED} - {"steady-mean", *COSTS, *CLIENTS}
    known = set(values_of(replace(run.manifest, move=None), measured)) - {*ASKED}
    assert known == {"move-seconds", "seconds-per-gb"}


def test_an_unknown_measure_is_answered_with_the_nearest():
    with pytest.raises(
        ValueError, match=r"no measure 'move-second', only move-seconds, .*; did you mean move-seconds\?"
    ):
        find_measure("move-second")
