"""The calibration's rows as a table: for people, for a document, as JSON. Pure."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from results.series.calibrate import NIGHTS_ALLOWED, Power, Quiet
from results.series.simulate import PROMISED

Kept = Literal["kept", "broken", "open", ""]
RUNS_ALLOWED = {(100, "5 %"): 7, (100, "10 %"): 3, (1000, "5 %"): 9, (1000, "10 %"): 3}
"""(series, step) → the median of runs that is promised, for Gaussian noise of 3 %."""
RIGHT_ALLOWED = {"5 %": 0.70, "9 %": 0.90, "10 %": 0.90}
"""Step → the share of positions within one run that is promised."""


def kept_quiet(row: Quiet) -> Kept:
    """Whether the promise holds; open: missed, but its interval reaches it. Other families have no promise."""
    if row.family not in PROMISED:
        return ""
    return _kept(row.share <= NIGHTS_ALLOWED, row.interval[1] <= NIGHTS_ALLOWED, row.interval[0] > NIGHTS_ALLOWED)


def kept_runs(row: Power) -> Kept:
    """The same, for the median of runs to find a step; Gaussian noise only."""
    limit = RUNS_ALLOWED.get((row.series, row.step))
    if limit is None or row.family != "gaussian":
        return ""
    low, high = row.median_interval
    return _kept(row.median <= limit, high <= limit, low > limit)


def kept_position(row: Power) -> Kept:
    """The same, for the position; Gaussian noise only."""
    limit = RIGHT_ALLOWED.get(row.step)
    if limit is None or row.family != "gaussian":
        return ""
    right, low, high = row.position
    return _kept(right >= limit, low >= limit, high < limit)


def _kept(measured: bool, surely: bool, surely_not: bool) -> Kept:
    if surely or (measured and not surely_not):
        return "kept"
    return "broken" if surely_not else "open"


def as_json(rows: "Sequence[Quiet | Power]") -> list[dict[str, Any]]:
    """One object a row; a median that was not reached is null."""
    return [_quiet(row) if isinstance(row, Quiet) else _power(row) for row in rows]


def _quiet(row: Quiet) -> dict[str, Any]:
    return {
        "measure": "false-alarms",
        "tool": row.tool,
        "family": row.family,
        "series": row.series,
        "nights": row.nights,
        "alarmed": row.alarmed,
        "alarms": row.alarms,
        "share": row.share,
        "interval": list(row.interval),
        "promise": kept_quiet(row) or None,
    }


def _power(row: Power) -> dict[str, Any]:
    return {
        "measure": "power",
        "tool": row.tool,
        "family": row.family,
        "series": row.series,
        "step": row.step,
        "before": row.before,
        "trials": row.trials,
        "found": row.detected,
        "median": row.median if math.isfinite(row.median) else None,
        "median_interval": list(row.median_interval),
        "position": list(row.position),
        "promise": kept_runs(row) or None,
        "position_promise": kept_position(row) or None,
    }


def markdown(rows: "Sequence[Quiet | Power]") -> str:
    """Two tables: nights with a false alarm, and steps."""
    lines = ["| tool | noise | series | nights | with a false alarm | 95 % | |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        if isinstance(row, Quiet):
            low, high = row.interval
            lines.append(
                f"| {row.tool} | {row.family} | {row.series} | {row.nights} | {row.share:.1%} | {low:.1%}–{high:.1%} "
                f"| {kept_quiet(row)} |"
            )
    lines += ["", "| tool | noise | series | step | runs before | found | median runs | within ± 1 run | |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        if isinstance(row, Power):
            right, low, high = row.position
            median = f"{row.median:g}" if math.isfinite(row.median) else "–"
            found = f"{row.detected}/{row.trials}"
            promise = ", ".join(part for part in (kept_runs(row), kept_position(row)) if part)
            lines.append(
                f"| {row.tool} | {row.family} | {row.series} | {row.step} | {row.before} | {found} | {median} "
                f"| {right:.0%} ({low:.0%}–{high:.0%}) | {promise} |"
            )
    return "\n".join(lines)
