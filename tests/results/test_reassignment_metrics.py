"""The criterion `reassignment-metrics`: a metric that is always 0 while data moves fails, and nothing else."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.criteria.catalogue.reassignment_metrics import CRITERION, METRICS, READINGS
from results.criteria.run_view import RunView
from tests.results.synthetic import Options, synthetic_run


def moved():
    """Return a move of some 20 s."""
    return synthetic_run(Options(log_bytes=200e6, partitions=20))


def judged(run, samples=None):
    view = RunView(run.manifest, run.samples if samples is None else samples, run.events)
    assert CRITERION.needs(view)
    return CRITERION.findings(view)


def silent(run, *metrics):
    chosen = pc.is_in(run.samples["metric"], pa.array(metrics, pa.string()))
    values = pc.if_else(chosen, 0.0, run.samples["value"])
    return run.samples.set_column(run.samples.column_names.index("value"), "value", values)


def test_metrics_that_count_pass():
    [found] = judged(moved())
    assert (found.verdict, found.observed) == ("pass", 0.0)


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_that_is_always_0_fails_and_is_named(metric):
    [found] = judged(moved(), silent(moved(), metric))
    assert (found.verdict, found.observed) == ("fail", 1.0)
    assert f"every reading of {metric} of the run is 0" in found.why


def test_one_reading_above_0_is_enough():
    """A metric that lags, or counts too little, is not judged."""
    samples = silent(moved(), *METRICS)
    rows = range(samples.num_rows)
    first = [next(row for row in rows if samples["metric"][row].as_py() == metric) for metric in METRICS]
    values = samples["value"].to_pylist()
    for row in first:
        values[row] = 1.0
    samples = samples.set_column(samples.column_names.index("value"), "value", pa.array(values, pa.float64()))
    assert [found.verdict for found in judged(moved(), samples)] == ["pass"]


def test_a_copy_of_less_than_10_s_is_not_judged():
    short = synthetic_run(Options(log_bytes=80e6, partitions=8))
    assert judged(short, silent(short, *METRICS)) == []


def test_without_a_listed_reassignment_nothing_is_judged():
    samples = silent(moved(), *METRICS, "move.in_flight")
    assert judged(moved(), samples) == []


def test_a_metric_that_was_not_read_is_open():
    """With fewer readings at one of its brokers, the others may have missed the reassignment."""
    samples = silent(moved(), "broker.reassigning")
    chosen = pc.and_(pc.equal(samples["metric"], "broker.reassigning"), pc.equal(samples["host"], "b1"))
    few = pa.concat_tables([samples.filter(pc.invert(chosen)), samples.filter(chosen)[: READINGS - 1]])
    [found] = judged(moved(), few)
    assert (found.verdict, found.observed) == ("inconclusive", None)


def test_moves_in_steps_and_with_a_wildcard_are_not_judged():
    run = moved()
    manifest = run.manifest
    steps = replace(manifest, parameters={**manifest.parameters, "mode": "batched"})
    wildcard = replace(manifest, move=replace(manifest.move, wildcard=True))
    for other in (steps, wildcard):
        assert not CRITERION.needs(RunView(other, run.samples, run.events))
