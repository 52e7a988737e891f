"""Calibration of the judge on generated series: false alarms a night, runs until a step is found, its position.

    ./run exec python -m tools.calibrate [--profile quick|full] [--seed N] [--jobs N] [--no-otava] [--json]

The measurement is pure: everything follows from the seed. Apache Otava is measured on the same series for comparison.
The exit code is 1 when the judge breaks one of its promises.
"""

import argparse
import json
import math
import operator
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.stats import binomtest

from results.series.block import Block, Floats
from results.series.calculator import FEWEST_RUNS_TO_JUDGE
from results.series.changes import replay
from results.series.judge import Judge
from results.series.noise_estimation import learn, learned_as_it_grows
from testbed.paths import cache_dir
from tools.simulation import FAMILIES, PROMISED, step, store

SIGMA = 0.03
"""The noise of one run, as a fraction of the level."""
NIGHTS_ALLOWED = 0.05
"""The promise: at most this share of nights raises any false alarm."""
AFTER = 40
"""A step that is not found in so many runs counts as never found."""

NAME = "testbed"
"""Of this package among the tools; with several runs a night its name goes on."""
EACH = 100
"""So many of the series with a step are judged with the noise of one store; the next ones with that of another."""

Alarms = list[tuple[int, int, int]]
"""(night, series, the row of the first bad run) of everything that was reported."""
Run = Callable[[Floats, int, int, Floats | None], Alarms]
"""(values, first night that counts, seed, the store they belong to) → what is reported from that night on.

`values` are a store of their own when there is no other.
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that reports changes; it needs so many `runs` before it says anything. A night has `each` runs."""

    name: str
    runs: int
    run: Run
    each: int = 1


@dataclass(frozen=True, slots=True)
class Quiet:
    """Nights of stores in which nothing happened: so many, so many of them with an alarm, so many alarms."""

    tool: str
    family: str
    series: int
    nights: int
    alarmed: int
    alarms: int

    @property
    def share(self) -> float:
        """Of nights with any false alarm."""
        return self.alarmed / self.nights

    @property
    def interval(self) -> tuple[float, float]:
        """That of `share`, 95 %."""
        return wilson(self.alarmed, self.nights)


@dataclass(frozen=True, slots=True)
class Power:
    """Steps of one size: `found` has the runs each took (`AFTER` + 1: not found), `exact` whether ± 1 run right."""

    tool: str
    family: str
    series: int
    sigmas: float
    before: int
    found: tuple[int, ...]
    right: int

    @property
    def step(self) -> str:
        """Return the step's size, as a fraction of the level."""
        return f"{100 * self.sigmas * SIGMA:g} %"

    @property
    def trials(self) -> int:
        """Return how many series there were."""
        return len(self.found)

    @property
    def median(self) -> float:
        """Runs to find the step, the step's first run being 1; infinite when fewer than half are found."""
        middle = float(np.median(self.found))
        return middle if middle <= AFTER else math.inf

    @property
    def detected(self) -> int:
        """Return how many steps were found at all."""
        return sum(1 for runs in self.found if runs <= AFTER)

    @property
    def median_interval(self) -> tuple[int, int]:
        """That of `median`, 95 %, from the order of the values."""
        ordered = sorted(self.found)
        half = 0.98 * math.sqrt(self.trials)
        low, high = max(0, math.floor(self.trials / 2 - half)), min(self.trials - 1, math.ceil(self.trials / 2 + half))
        return ordered[low], ordered[high]

    @property
    def position(self) -> tuple[float, float, float]:
        """Return the share of found steps whose first bad run is right within one run; and its 95 % interval."""
        if not self.detected:
            return (0.0, 0.0, 1.0)
        return (self.right / self.detected, *wilson(self.right, self.detected))


@dataclass(frozen=True, slots=True)
class Profile:
    """How much is measured: stores and nights for each size of store, `trials` series for each step."""

    name: str
    stores: tuple[tuple[int, int, int], ...]
    """(series, stores, nights of each), …"""
    families: tuple[str, ...]
    trials: int
    before: tuple[int, ...]
    power_families: tuple[str, ...]
    power_series: tuple[int, ...] = (100, 1000)
    thrice: tuple[str, ...] = ()
    """Families for which false alarms are counted with three runs a night, too."""
    compared_stores: int = 1
    """So many stores of each size are judged by the other tools, which alarm in most nights of most families."""
    compared_trials: int = 100
    """So many steps of each size are judged by the other tools."""


QUICK = Profile("quick", ((100, 1, 40),), PROMISED, 100, (60,), ("gaussian",), thrice=("gaussian",))
"""A look whether anything broke, under a minute on one core: too few nights to tell 5 % from 2 % or 10 %."""
FULL = Profile(
    "full",
    ((100, 10, 110), (1000, 4, 110)),
    tuple(FAMILIES),
    200,
    (30, 40, 60),
    (*PROMISED, "far-outliers"),
    thrice=tuple(FAMILIES),
)
"""Every noise, one run and three runs a night: 1,000 nights of 100 series, 400 of 1,000. 41 min on two cores."""
STEPS = (5 / 3, 3.0, 10 / 3)
"""In σ: 5 %, 9 % and 10 %."""


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share."""
    low, high = binomtest(hits, of).proportion_ci(0.95, "wilson")
    return float(low), float(high)


def ours(each: int = 1) -> Tool:
    """This package as a tool: the noise is learned from the store, and again as it grows, as a nightly job does."""
    name = NAME if each == 1 else f"{NAME}, {each} runs a night"
    return Tool(name, FEWEST_RUNS_TO_JUDGE, partial(_judged, each), each)


def _judged(each: int, values: Floats, first: int, seed: int, of: Floats | None) -> Alarms:
    judge = Judge()
    if of is None:
        nights = replay(values, learned_as_it_grows(seed, judge.rule.night, each=each), judge, first=first, each=each)
    else:
        known = learn(Block.of(of.T.tolist()), seed, judge.rule.night, each=np.full(of.shape[1], each))
        nights = replay(values, lambda _night, _block: known, judge, of.shape[1], first, each)
    return [(found.night, found.series, found.night + 1 - found.change.runs) for night in nights for found in night]


def false_alarms(tool: Tool, family: str, series: int, stores: int, nights: int, seed: int) -> Quiet:
    """Counts nights with an alarm in stores where nothing happens, from the first night that the tool can judge."""
    alarmed = alarms = 0
    begin = math.ceil(tool.runs / tool.each)
    for number in range(stores):
        rng = np.random.default_rng([seed, number, series])
        values = store(rng, family, nights * tool.each, series, SIGMA)
        found = [night for night, _, _ in tool.run(values, begin * tool.each - 1, seed + number, None)]
        alarmed += len(set(found))
        alarms += len(found)
    return Quiet(tool.name, family, series, stores * (nights - begin + 1), alarmed, alarms)


def power(tool: Tool, family: str, series: int, sigmas: float, before: int, trials: int, seed: int) -> Power:
    """Steps up after `before` runs, in series that belong to stores of that size (`EACH` to one store)."""
    runs: list[int] = []
    right = 0
    parts = math.ceil(trials / EACH)
    for number in range(parts):
        rng = np.random.default_rng([seed, number, series, before, round(100 * sigmas)])
        of = store(rng, family, before, series, SIGMA)
        values = step(rng, family, before + AFTER, trials // parts, SIGMA, before, sigmas)
        first: dict[int, tuple[int, int]] = {}
        for night, at, begun in tool.run(values, before, seed + number, of):
            first.setdefault(at, (night, begun))
        for at in range(values.shape[1]):
            night, begun = first.get(at, (before + AFTER, -9))
            runs.append(night - before + 1)
            right += abs(begun - before) <= 1
    return Power(tool.name, family, series, sigmas, before, tuple(runs), right)


def measures(profile: Profile, seed: int, tools: Sequence[Tool] = ()) -> "Iterator[Callable[[], Quiet | Power]]":
    """Yield what makes each row of the table, in its order. Each can be called in a process of its own."""
    once, thrice = ours(), ours(each=3)
    for series, stores, nights in profile.stores:
        for family in profile.families:
            yield partial(false_alarms, once, family, series, stores, nights, seed)
            for tool in tools:
                yield partial(false_alarms, tool, family, series, min(stores, profile.compared_stores), nights, seed)
            if family in profile.thrice:
                yield partial(false_alarms, thrice, family, series, stores, nights, seed)
    for series in profile.power_series:
        for family in profile.power_families:
            for before in profile.before:
                for sigmas in STEPS:
                    yield partial(power, once, family, series, sigmas, before, profile.trials, seed)
                    for tool in tools:
                        trials = min(profile.trials, profile.compared_trials)
                        yield partial(power, tool, family, series, sigmas, before, trials, seed)


def calibrate(profile: Profile, seed: int, tools: Sequence[Tool] = (), jobs: int = 1) -> "Iterator[Quiet | Power]":
    """Yield the rows of the table, in its order; `tools` are measured as well, `jobs` processes make rows at a time."""
    rows = list(measures(profile, seed, tools))
    if jobs == 1:
        yield from map(operator.call, rows)
        return
    with ProcessPoolExecutor(jobs) as processes:
        yield from processes.map(operator.call, rows)


Promise = Literal["kept", "broken", "open", ""]
RUNS_ALLOWED = {(100, "5 %"): 7, (100, "10 %"): 3, (1000, "5 %"): 9, (1000, "10 %"): 3}
"""(series, step) → the median of runs that is promised, for Gaussian noise of 3 %."""
RIGHT_ALLOWED = {"5 %": 0.70, "9 %": 0.90, "10 %": 0.90}
"""Step → the share of positions within one run that is promised."""


def alarm_promise(row: Quiet) -> Promise:
    """Return whether the promise holds; open: missed, but its interval reaches it. Other families have no promise."""
    if row.family not in PROMISED:
        return ""
    return _promise(row.share <= NIGHTS_ALLOWED, row.interval[1] <= NIGHTS_ALLOWED, row.interval[0] > NIGHTS_ALLOWED)


def runs_promise(row: Power) -> Promise:
    """Return the same, for the median of runs to find a step; Gaussian noise only."""
    limit = RUNS_ALLOWED.get((row.series, row.step))
    if limit is None or row.family != "gaussian":
        return ""
    low, high = row.median_interval
    return _promise(row.median <= limit, high <= limit, low > limit)


def position_promise(row: Power) -> Promise:
    """Return the same, for the position; Gaussian noise only."""
    limit = RIGHT_ALLOWED.get(row.step)
    if limit is None or row.family != "gaussian":
        return ""
    right, low, high = row.position
    return _promise(right >= limit, low >= limit, high < limit)


def _promise(measured: bool, surely: bool, surely_not: bool) -> Promise:
    if surely or (measured and not surely_not):
        return "kept"
    return "broken" if surely_not else "open"


def as_json(rows: "Sequence[Quiet | Power]") -> list[dict[str, Any]]:
    """Return one object a row; a median that was not reached is null."""
    return [_alarm_row(row) if isinstance(row, Quiet) else _power_row(row) for row in rows]


def _alarm_row(row: Quiet) -> dict[str, Any]:
    counted = {"share": row.share, "interval": list(row.interval), "promise": alarm_promise(row) or None}
    return {"measure": "false-alarms", **asdict(row), **counted}


def _power_row(row: Power) -> dict[str, Any]:
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
        "promise": runs_promise(row) or None,
        "position_promise": position_promise(row) or None,
    }


def markdown(rows: "Sequence[Quiet | Power]") -> str:
    """Two tables: nights with a false alarm, and steps."""
    lines = ["| tool | noise | series | nights | with a false alarm | 95 % | |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        if isinstance(row, Quiet):
            low, high = row.interval
            lines.append(
                f"| {row.tool} | {row.family} | {row.series} | {row.nights} | {row.share:.1%} | {low:.1%}–{high:.1%} "
                f"| {alarm_promise(row)} |"
            )
    lines += ["", "| tool | noise | series | step | runs before | found | median runs | within ± 1 run | |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        if isinstance(row, Power):
            right, low, high = row.position
            median = f"{row.median:g}" if math.isfinite(row.median) else "–"
            found = f"{row.detected}/{row.trials}"
            promise = ", ".join(part for part in (runs_promise(row), position_promise(row)) if part)
            lines.append(
                f"| {row.tool} | {row.family} | {row.series} | {row.step} | {row.before} | {found} | {median} "
                f"| {right:.0%} ({low:.0%}–{high:.0%}) | {promise} |"
            )
    return "\n".join(lines)


def _line(row: "Quiet | Power") -> str:
    if isinstance(row, Quiet):
        return f"{row.tool}: {row.family}, {row.series} series: an alarm in {row.alarmed} of {row.nights} nights"
    found = f"{row.detected} of {row.trials} steps of {row.step} found, median {row.median:g} runs"
    return f"{row.tool}: {row.family}, {row.series} series, {row.before} runs before: {found}"


def main(words: Sequence[str] | None = None) -> int:
    """Run the calibration, print its tables, and return the exit code."""
    from tools.otava import OtavaMissing, environment, otava

    parser = argparse.ArgumentParser(prog="tools.calibrate", description="false alarms, and runs to find a step")
    parser.add_argument(
        "--profile",
        choices=("quick", "full"),
        default="quick",
        help="quick (default), or full: 41 min on two cores",
    )
    parser.add_argument("--seed", type=int, default=1, help="draws the series (default: 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--no-otava", action="store_true", help="do not measure Apache Otava for comparison")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    args = parser.parse_args(words)
    if args.jobs < 1:
        parser.error("--jobs is above 0")
    others: list[Tool] = []
    missing = "left out: --no-otava" if args.no_otava else None
    if missing is None:
        try:
            others = [otava(environment(cache_dir() / "otava"))]
        except OtavaMissing as error:
            missing = str(error)
    rows: list[Quiet | Power] = []
    profile = FULL if args.profile == "full" else QUICK
    try:
        for row in calibrate(profile, args.seed, others, args.jobs):
            rows.append(row)
            print(_line(row), file=sys.stderr, flush=True)
    except OtavaMissing as error:
        parser.exit(70, f"Otava failed on a series: {error}; --no-otava measures without it\n")
    if args.json:
        document = {"profile": profile.name, "seed": args.seed, "otava": missing or "measured", "rows": as_json(rows)}
        print(json.dumps(document, indent=2))
    else:
        print(markdown(rows))
        if missing is not None:
            print(f"\nOtava was not measured: {missing}")
    broken = [row for row in as_json(rows) if "broken" in (row.get("promise"), row.get("position_promise"))]
    return 1 if any(row["tool"].startswith(NAME) for row in broken) else 0


if __name__ == "__main__":
    sys.exit(main())
