"""The criterion `isr-expansion`: a replica that joins the ISR late fails, and a healthy one passes."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.contract.schema import Sample, samples_table
from results.criteria.catalogue.isr_expansion import CRITERION, allowed_s
from results.criteria.quantities import US
from results.criteria.run_view import RunView
from tests.results.synthetic import Options, synthetic_run


def findings(late_s):
    """Return the findings of a move whose partitions stay in flight for so many seconds after their last byte."""
    run = synthetic_run()
    flows = [flow for flow in run.manifest.move.flows if flow.kind == "throttled"]
    logs = RunView(run.manifest, run.samples, run.events).series.flow_bytes(flows)
    last_us = int(logs.t[logs.value.argmax()])
    done_us = last_us + round(late_s * US)
    polls = [
        Sample(us, "driver", "move.in_flight", 100.0 if us < done_us else 0.0)
        for us in range(last_us - 50 * US, done_us + 5 * US, US // 2)
    ]
    others = run.samples.filter(pc.not_equal(run.samples["metric"], "move.in_flight"))
    samples = pa.concat_tables([others, samples_table(polls)])
    return CRITERION.findings(RunView(run.manifest, samples, run.events))


@pytest.mark.parametrize("late_s", [0.0, 1.0, 2.0])
def test_the_next_fetch_ends_the_move(late_s):
    assert [found.verdict for found in findings(late_s)] == ["pass"]


@pytest.mark.parametrize("late_s", [4.0, 6.0])
def test_a_late_replica_fails(late_s):
    [found] = findings(late_s)
    assert found.verdict == "fail"
    assert late_s <= found.observed <= late_s + 0.5


def test_the_most_allowed_has_one_response():
    move = synthetic_run().manifest.move
    assert allowed_s(move) == pytest.approx(3.0 + move.response_max_bytes / move.quota_bytes_per_s)


def test_a_move_that_did_not_end_says_nothing():
    run = synthetic_run()
    samples = run.samples.filter(pc.not_equal(run.samples["metric"], "move.in_flight"))
    assert CRITERION.findings(RunView(run.manifest, samples, run.events)) == []


def test_logs_that_were_not_read_to_the_end_leave_it_open():
    run = synthetic_run(Options(gap=("b2", 40.0, 1000.0)))
    [found] = CRITERION.findings(RunView(run.manifest, run.samples, run.events))
    assert found.verdict == "inconclusive"
