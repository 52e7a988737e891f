"""The criterion `wire-overhead`: headers pass, and a follower that fetches everything twice fails."""

from dataclasses import replace

import pytest

from results.criteria import judge
from results.criteria.catalogue.wire_overhead import CRITERION
from results.criteria.run_view import RunView
from tests.results.judged import named
from tests.results.relocated import STREAMS, TIERED, Told, relocated
from tests.results.synthetic import synthetic_run


def verdicts(overhead, **given):
    run = synthetic_run()
    manifest = replace(run.manifest, move=replace(run.manifest.move, nic_bytes_per_log_byte=overhead, **given))
    return [found.verdict for found in CRITERION.findings(RunView(manifest, run.samples, run.events))]


# Of 222 real runs the lowest and the highest, and the one run whose followers fetched twice.
@pytest.mark.parametrize(
    ("overhead", "expected"), [(1.053, ["pass"]), (1.056, ["pass"]), (1.25, ["fail"]), (2.042, ["fail"]), (None, [])]
)
def test_the_overhead_of_the_calibration_transfer(overhead, expected):
    assert verdicts(overhead) == expected


def test_small_responses_carry_more_of_what_is_fetched_again():
    """Of a response of 64 KiB half a batch of 16 KiB is fetched again: 1.046 × 1.14."""
    assert verdicts(1.19, response_max_bytes=65_536) == ["pass"]
    assert verdicts(1.19, response_max_bytes=1 << 20) == ["fail"]
    assert verdicts(2.04, response_max_bytes=65_536) == ["fail"]


@pytest.mark.parametrize(("told", "findings"), [(Told(), 1), (TIERED, 1), (STREAMS, 0)])
def test_shared_storage_copies_nothing_so_nothing_is_judged(told, findings):
    """The manifest of such a run has the overhead of full frames, which passes always."""
    assert len(named(judge(*relocated(told=told)), "wire-overhead")) == findings
