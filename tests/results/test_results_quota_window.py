"""The quota window of 11 s against a second, plain implementation that shares no code with the product."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from results.contract.manifest import Fetchers, Flow
from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria import judge
from tests.results.synthetic import synthetic_run

T0 = 1_790_000_000_000_000
RESPONSE = 1_000_000
QUOTA = 2_000_000.0
BOUND = QUOTA * 11 + QUOTA * 1 + RESPONSE
"""KIP-73's bound for a follower with one fetcher: the window, one sample more, and one response."""


def most_in_a_quota_window(readings):
    """Return the most bytes between two readings at most 11 s apart, less 50 ms that a reading may take."""
    most = 0
    for i in range(len(readings)):
        for j in range(i + 1, len(readings)):
            seconds = (readings[j][0] - readings[i][0]) / 1_000_000
            if seconds <= 10.95:
                most = max(most, readings[j][1] - readings[i][1])
    return most


def longest_gap_s(readings):
    return max((after[0] - before[0]) / 1_000_000 for before, after in pairwise(readings))


def run_of(readings):
    """Return manifest, samples and events of a move of one partition from b1 to b2 with these readings of its log."""
    manifest = synthetic_run().manifest
    flow = Flow("throttled", "moving", (0,), "b1", "b2")
    move = replace(
        manifest.move,
        quota_bytes_per_s=QUOTA,
        response_max_bytes=RESPONSE,
        flows=(flow,),
        fetchers={"b1": Fetchers(1, 0), "b2": Fetchers(0, 1)},
    )
    samples = [Sample(us, "b2", "log.bytes", float(total), "moving", 0) for us, total in readings]
    busy = [
        Sample(us, "machine", metric, 0.01)
        for us in range(T0 - 1_000_000, readings[-1][0] + 2_000_000, 1_000_000)
        for metric in ("cpu.busy", "cpu.steal")
    ]
    events = [Event(T0, "move.started"), Event(readings[-1][0] - 1, "move.done")]
    return replace(manifest, move=move), samples_table([*samples, *busy]), events_table(events)


@settings(max_examples=15, deadline=None, phases=[Phase.generate])  # to shrink a list of readings takes minutes
@given(
    st.lists(
        st.tuples(st.integers(min_value=900_000, max_value=3_600_000), st.integers(min_value=1, max_value=12_000_000)),
        min_size=14,
        max_size=40,
    )
)
def test_the_quota_window_criterion_agrees_with_plain_loops(steps):
    readings = [(T0, 0)]
    for pause_us, grown in steps:
        readings.append((readings[-1][0] + pause_us, readings[-1][1] + grown))
    # The last reading grows, so that the move's bytes end where the readings end.
    readings.append((readings[-1][0] + 1_000_000, readings[-1][1] + 1))
    judgement = judge(*run_of(readings))
    [received] = [rates for rates in judgement.measures.rates if rates.direction == "receive"]
    most = most_in_a_quota_window(readings)
    assert (received.worst_window.bytes if received.worst_window else 0) == most
    [finding] = [c for c in judgement.criteria if c.name == "throttled-window" and c.direction == "receive"]
    if most > BOUND:
        assert finding.verdict == "fail"
    else:
        assert finding.verdict == ("inconclusive" if longest_gap_s(readings) > 3.0 else "pass"), finding.why
