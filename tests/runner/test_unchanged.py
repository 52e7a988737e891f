"""The same against the same gives no alarm: comparisons and qualifications of runs drawn from the recorded ones.

A drawn run has the recorded values, failed criteria and log lines of one run. The canaries stand still, so no machine
answers.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from results.compare.scenario_judgement import CERTAIN, doubtful, judge_cells
from results.nights.values import FAILED
from testbed.runner.campaign import default_measures
from testbed.runner.comparison import outcome
from testbed.runner.journal import CanaryReading, RunBegun, RunDone, SlotRun, campaign_state
from testbed.runner.version_results import cell
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
    done = RunDone(slot, rows[0]["run_id"], verdict, values, tuple(failed), "jars", 60.0, tuple(sorted(kept)))
    return replace(done, logged=logged_of(rows))


def logged_of(rows):
    """Return the kinds of log lines of a recorded run."""
    return tuple(json.loads(next(row["logged"] for row in rows if row["metric"] == FAILED)))


def outcome_of(runs, rng, slower=1.0, also=()):
    """Return the outcome of eight pairs of runs of one pool; `slower` and `also` is what is wrong with the candidate's.

    `also` are kinds of lines that each of its runs logs.
    """
    asked = campaign("AB", repeats=PAIRS, command="compare")
    asked = replace(asked, measures=default_measures("compare", asked.variants))
    entries = [CALM]
    for slot in asked.slots:
        broken = slot.variant == "B"
        done = drawn(runs, rng, slot.index, slower if broken else 1.0)
        done = replace(done, logged=(*done.logged, *also)) if broken else done
        entries += [RunBegun(slot.index, done.run_id), done, CALM]
    return outcome(asked, campaign_state(entries))


def compared(runs, rng, slower=1.0, also=()):
    """Return the verdict of that outcome."""
    return outcome_of(runs, rng, slower, also).verdict


def qualified(runs, rng):
    """Return the verdict of a qualification's scenario: one run of each, and two more where the first is in doubt."""

    def version(name, count):
        made = [SlotRun(drawn(runs, rng, slot), (CALM,), (CALM,)) for slot in range(count)]
        return cell(name, made, (), lambda _run_id: ())

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


def test_the_recorded_runs_have_log_lines():
    """Of some releases and scenarios only: others say nothing of lines that come by chance."""
    pools = [runs for release in RELEASES for runs in drawn_from(release).values()]
    assert sum(bool(logged_of(rows)) for runs in pools for rows in runs) >= 30


@pytest.mark.parametrize("release", RELEASES)
def test_of_20_comparisons_of_a_release_with_itself_none_alarms_for_a_log_line(release):
    for scenario, runs in drawn_from(release).items():
        rng = np.random.default_rng(4)
        said = [{each.verdict for each in outcome_of(runs, rng).lines} for _ in range(TIMES)]
        assert not any("REGRESSED" in each for each in said), (scenario, said)


@pytest.mark.parametrize("release", RELEASES)
def test_and_each_finds_a_line_that_the_candidate_alone_logs(release):
    for scenario, runs in drawn_from(release).items():
        rng = np.random.default_rng(5)
        said = [compared(runs, rng, also=("WARN ReplicaManager: A line.",)) for _ in range(TIMES)]
        assert said.count("REGRESSED") == TIMES, (scenario, said)


@pytest.mark.parametrize("release", RELEASES)
def test_of_20_qualifications_of_a_release_against_itself_at_most_one_alarms(release):
    rng = np.random.default_rng(3)
    said = [[qualified(runs, rng) for runs in drawn_from(release).values()] for _ in range(TIMES)]
    assert sum("REGRESSED" in each for each in said) <= 1, said
