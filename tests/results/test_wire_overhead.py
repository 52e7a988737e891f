"""The criterion `wire-overhead`: headers pass, and a follower that fetches everything twice fails."""

from dataclasses import replace

import pytest

from results.criteria.catalogue.wire_overhead import CRITERION
from results.criteria.run_view import RunView
from tests.results.synthetic import synthetic_run


def verdicts(overhead):
    run = synthetic_run()
    manifest = replace(run.manifest, move=replace(run.manifest.move, nic_bytes_per_log_byte=overhead))
    return [found.verdict for found in CRITERION.findings(RunView(manifest, run.samples, run.events))]


# Of 222 real runs the lowest and the highest, and the one run whose followers fetched twice.
@pytest.mark.parametrize(
    ("overhead", "expected"), [(1.053, ["pass"]), (1.056, ["pass"]), (1.25, ["fail"]), (2.042, ["fail"]), (None, [])]
)
def test_the_overhead_of_the_calibration_transfer(overhead, expected):
    assert verdicts(overhead) == expected
