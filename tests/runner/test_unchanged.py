"""The same against the same gives no alarm: comparisons and qualifications of runs drawn from the recorded ones.

A drawn run has the recorded values and failed criteria of one run. The canaries stand still, so no machine answers.
"""

from dataclasses import replace

import numpy as np
import pytest

from results.compare.qualification import CERTAIN, doubtful, judge_cells
from results.nights.values import FAILED
from testbed.runner.campaign import default_measures
from testbed.runner.comparison import outcome
from testbed.runner.journal import CanaryReading, RunBegun, RunDone, SlotRun, campaign_state
from testbed.runner.qualification import cell
from tests.nights.replayed import RELEASES, drawn_from
from tests.runner.fakes import campaign

PAIRS, TIMES = 8, 20
CALM = CanaryReading({"cpu": 0.1, "nic": 1.0}, "this machine")


def failed_of(rows):
    """Return the names of the criteria that failed in a recorded run."""
    return next((row["failed"] or "").split(", ") if row["failed"] else [] for row in rows if row["metric"] == FAILED)


def drawn(runs, rng, slot, slower=1.0):
    """Return the journal's entry of a run out of a pool; `slower` multiplies what its move took."""
    rows = runs[rng.integers(len(runs))]
    values = {row["metric"]: row["value"] for row in rows if row["value"] is not None}
    values["move-seconds"] *= slower
    failed = failed_of(rows)
    kept = {name for each in runs for name in failed_of(each)} - {*failed}
    verdict = "fail" if failed else "pass"
    return RunDone(slot, rows[0]["run_id"], verdict, values, tuple(failed), "jars", 60.0, tuple(sorted(kept)))


def compared(runs, rng, slower=1.0):
    """Return the verdict of eight pairs of runs of one pool; `slower` is what is wrong with the candidate's."""
    asked = campaign("AB", repeats=PAIRS, command="compare")
    asked = replace(asked, measures=default_measures("compare", asked.variants))
    entries = [CALM]
    for slot in asked.slots:
        done = drawn(runs, rng, slot.index, slower if slot.variant == "B" else 1.0)
        entries += [RunBegun(slot.index, done.run_id), done, CALM]
    return outcome(asked, campaign_state(entries)).verdict


def qualified(runs, rng):
    """Return the verdict of a qualification's scenario: one run of each, and two more where the first is in doubt."""

    def version(name, count):
        made = [SlotRun(drawn(runs, rng, slot), (CALM,), (CALM,)) for slot in range(count)]
        return cell(name, made, {})

    first = version("candidate", 1)
    count = CERTAIN if doubtful(first) else 1
    candidate = version("candidate", CERTAIN) if doubtful(first) else first
    return judge_cells(candidate, [version("baseline", count)]).verdict


@pytest.mark.parametrize("release", RELEASES)
def test_of_20_comparisons_of_a_release_with_itself_at_most_one_alarms(release):
    for scenario, runs in drawn_from(release).items():
        rng = np.random.default_rng(1)
        said = [compared(runs, rng) for _ in range(TIMES)]
        assert sum(verdict in ("REGRESSED", "IMPROVED") for verdict in said) <= 1, (scenario, said)


@pytest.mark.parametrize("release", RELEASES)
def test_and_each_finds_a_move_that_takes_a_quarter_longer(release):
    for scenario, runs in drawn_from(release).items():
        rng = np.random.default_rng(2)
        said = [compared(runs, rng, slower=1.25) for _ in range(TIMES)]
        assert said.count("REGRESSED") == TIMES, (scenario, said)


@pytest.mark.parametrize("release", RELEASES)
def test_of_20_qualifications_of_a_release_against_itself_at_most_one_alarms(release):
    rng = np.random.default_rng(3)
    said = [[qualified(runs, rng) for runs in drawn_from(release).values()] for _ in range(TIMES)]
    assert sum("REGRESSED" in each for each in said) <= 1, said
