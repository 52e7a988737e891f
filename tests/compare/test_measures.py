from dataclasses import replace

import pytest

from results.compare import find_measure, measures, values_of
from results.criteria import judge
from tests.results.synthetic import synthetic_run

NAMES = ("move-seconds", "steady-mean", "highest-11s", "cpu-per-gb")


@pytest.fixture(scope="module")
def run():
    return synthetic_run()


def test_a_run_has_a_value_of_every_measure(run):
    measured = judge(run.manifest, run.samples, run.events).measures
    values = values_of(run.manifest, measured)
    assert tuple(values) == NAMES == tuple(measure.name for measure in measures())
    assert values["move-seconds"] == measured.done_s
    assert 0.9 < values["steady-mean"] <= 1.0
    assert values["steady-mean"] <= values["highest-11s"] < 1.2
    load, moved = measured.load, sum(r.total_bytes for r in measured.rates if r.direction == "receive")
    assert values["cpu-per-gb"] == pytest.approx(
        load.busy_mean * run.manifest.machine.cores * measured.throttled_s / moved * 1e9
    )


def test_what_could_not_be_measured_is_absent(run):
    measured = judge(run.manifest, run.samples, run.events).measures
    assert values_of(run.manifest, replace(measured, done_s=None, throttled_s=None, rates=())) == {}
    without = tuple(replace(rates, steady=None) for rates in measured.rates)
    assert set(values_of(run.manifest, replace(measured, rates=without))) == set(NAMES) - {"steady-mean"}
    assert set(values_of(replace(run.manifest, move=None), measured)) == {"move-seconds", "cpu-per-gb"}


def test_an_unknown_measure_is_answered_with_the_nearest():
    with pytest.raises(
        ValueError, match=r"no measure 'move-second', only move-seconds, .*; did you mean move-seconds\?"
    ):
        find_measure("move-second")
