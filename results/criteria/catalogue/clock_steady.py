"""No clock was set while the run was sampled: Kafka's quotas and every sample take the time from it."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from results.contract.verdict import Finding
from results.criteria.criterion import PRECONDITIONS, Criterion, has_any_move, has_steps
from results.criteria.findings import finding
from results.criteria.quantities import READING_S, US
from results.criteria.sample_series import RunSeries

NAME, METRIC = "clock-steady", "clock.offset"
JUMP_S = READING_S
"""A window may be shorter than the quota's by the time of one reading. A clock that is set by more than that moves a
reading into another window. Slewing changes both clocks alike, so the offset between them stays."""
EXPECTED = f"no clock is set by more than {JUMP_S * 1000:g} ms"


@dataclass(frozen=True, slots=True)
class ClockMeasures:
    """A host's clock: its wall clock less its monotonic clock, over all readings; the first jump in order of time."""

    host: str
    spread_s: float
    jump_s: float
    at_us: int


def clocks(run: RunSeries) -> list[ClockMeasures]:
    """Return the clock of each host that was read twice or more, by name."""
    hosts = sorted(set(run.of_metric(METRIC)["host"].to_pylist()))
    found = []
    for host in hosts:
        series = run.gauge(METRIC, host)
        if len(series) > 1:
            steps = np.diff(series.value)
            jumps = np.abs(steps) > JUMP_S
            first = int(np.argmax(jumps if jumps.any() else np.abs(steps)))
            spread = float(np.max(series.value) - np.min(series.value))
            found.append(ClockMeasures(host, spread, float(steps[first]), int(series.t[first + 1])))
    return found


def judge_clocks(found: list[ClockMeasures]) -> list[Finding]:
    """Return one finding for each clock that jumped; one for all clocks when none did, or none was read twice."""
    jumped = [each for each in found if each.spread_s > JUMP_S]
    if not found:
        why = "no clock was read twice"
        return [finding(NAME, EXPECTED, "inconclusive", why, observed=None, series=(METRIC,))]
    if not jumped:
        most = max(each.spread_s for each in found)
        why = f"{len(found)} clocks were read; none was set by more than {most * 1000:.1f} ms"
        return [finding(NAME, EXPECTED, "pass", why, observed=most, unit="s", series=(METRIC,))]
    return [_jumped(each) for each in jumped]


def _jumped(clock: ClockMeasures) -> Finding:
    at = datetime.fromtimestamp(clock.at_us / US, UTC)
    why = f"the clock of {clock.host} was set by {clock.jump_s:+.3f} s, to {at:%H:%M:%S} UTC: no rate is known"
    return finding(
        NAME, EXPECTED, "inconclusive", why, observed=clock.spread_s, unit="s", host=clock.host, series=(METRIC,)
    )


CRITERION = Criterion(
    name=NAME,
    title="Clocks not set",
    section=PRECONDITIONS,
    judge=lambda run: judge_clocks(clocks(run.series)),
    needs=lambda run: (has_any_move(run) or has_steps(run)) and len(run.series.of_metric(METRIC)) > 0,
    by_name=False,
    about_machine=True,
    catches="A clock that jumps while data moves.",
)
