"""The nights of a store as one HTML page: tonight on top, worst first; every series with its changes below.

Rows are drawn while they are seen, so that a thousand series scroll as twenty do. What is drawn is embedded.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from results.contract.texts import digits, plural
from results.nights.bucket import better_of, iso
from results.nights.night import Night
from results.nights.recent_values import RecentValues
from results.nights.render import summary
from results.nights.scenarios import ScenarioResult, SeriesResult, worst
from results.report.page import Figure
from results.report.render import embedded, inline, template
from results.series.history import ReportedChange
from results.series.judge import direction
from results.verdicts import WORST_FIRST, NightVerdict

Links = Callable[[str], str | None]
"""A run's id → where its own report is, relative to the page; None when there is none."""
STATES: Mapping[NightVerdict, str] = {
    **dict.fromkeys(WORST_FIRST, "inconclusive"),
    **dict.fromkeys(("FAILED", "BELOW-FLOOR", "REGRESSED"), "fail"),
    **dict.fromkeys(("IMPROVED", "OK"), "pass"),
}
WORDS: Mapping[NightVerdict, str] = {
    "FAILED": "Failed",
    "BELOW-FLOOR": "Below its floor",
    "REGRESSED": "Regressed",
    "ENV-CHANGED": "Environment changed",
    "NO-DATA": "No data",
    "NOISY": "Noisy",
    "MUTED": "Muted",
    "LEARNING": "Learning",
    "IMPROVED": "Improved",
    "OK": "OK",
}
MOST_SHOWN = 40
"""So many changes of tonight stand in the summary; the list below has all."""
DIGITS = 6


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change as the summary shows it; `runs` are the runs of tonight's judgement."""

    state: str
    word: str
    scenario: str
    metric: str
    series: str
    before: str
    after: str
    effect: str
    interval: str
    chance: str
    runs: int | None
    first_bad: str
    last_good: str
    first_bad_link: str | None
    last_good_link: str | None
    why: str


def render_nights(
    store: str,
    night: Night,
    found: Sequence[ScenarioResult],
    points: Mapping[str, RecentValues],
    links: Links = lambda _run: None,
) -> str:
    """Return the page as HTML text."""
    verdict = worst(found, night.problems)
    changes = [
        change_row(each, line, line.tonight, links) for each in found for line in each.lines if line.tonight is not None
    ]
    others = [
        (STATES[each.verdict], WORDS[each.verdict], each.name, summary(each))
        for each in found
        if each.verdict not in ("REGRESSED", "IMPROVED", "OK")
    ]
    listed = [
        (STATES[line.verdict], WORDS[line.verdict], f"{line.about.metric}, {each.name}", line.why)
        for each in found
        for line in each.lines
        if line.verdict in ("NOISY", "MUTED")
    ]
    logged = [
        (STATES[line.verdict], WORDS[line.verdict], each.name, words)
        for each in found
        for line in each.lines
        for words in line.new_lines
    ]
    return template("nights.html.j2").render(
        store=store,
        newest=iso(max(each.newest for each in found)) if found else None,
        state=STATES[verdict],
        word=WORDS[verdict],
        answer=answer(found),
        figures=_figures(night, found),
        most=MOST_SHOWN,
        changes=changes,
        waiting=waiting(found, links),
        others=others,
        listed=listed,
        logged=logged,
        kafka=", ".join(sorted({each.kafka for each in found})),
        problems=night.problems,
        data=embedded(document(found, points, links)),
        style=inline("templates/report.css") + inline("templates/suite.css") + inline("templates/nights.css"),
        script=inline("templates/nights.js"),
    )


def answer(found: Sequence[ScenarioResult]) -> str:
    """Return how many scenarios there are of each verdict, worst first."""
    if not found:
        return "No run has been judged yet."
    counts = [(sum(each.verdict == word for each in found), word) for word in WORST_FIRST]
    parts = [f"{count} {_of(word)}" for count, word in counts if count]
    return f"Of {plural(len(found), 'scenario')}: {', '.join(parts)}."


def _of(word: NightVerdict) -> str:
    said = {
        "ENV-CHANGED": "in another environment",
        "NO-DATA": "without data",
        "NOISY": "too noisy to tell",
        "BELOW-FLOOR": "below a floor",
    }
    return said.get(word, WORDS[word] if word == "OK" else WORDS[word].lower())


def _figures(night: Night, found: Sequence[ScenarioResult]) -> list[Figure]:
    lines = [line for each in found for line in each.lines]
    changed = sum(line.tonight is not None for line in lines)
    waiting = sum(len(line.open) for line in lines)
    return [
        Figure("Series judged", f"{len(lines):,}", "", f"in {plural(len(found), 'scenario')}"),
        Figure("Changes tonight", str(changed), "", "each with its first bad run"),
        Figure("Not acknowledged", str(waiting), "", "changes of this and earlier nights"),
        Figure("New runs", f"{night.ingested:,}", "", "taken in before judging"),
    ]


def change_row(each: ScenarioResult, line: SeriesResult, reported: ReportedChange, links: Links) -> ChangeRow:
    """Return a change as the summary shows it."""
    change, tonight = reported.change, line.tonight
    verdict: NightVerdict = "IMPROVED" if not _worse(line, reported) else "REGRESSED"
    if reported.first_bad in line.causes:
        verdict = "ENV-CHANGED"
    if reported is tonight and not line.judged:
        verdict = line.verdict
    span = change.interval
    return ChangeRow(
        state=STATES[verdict],
        word=WORDS[verdict],
        scenario=each.name,
        metric=line.about.metric,
        series=line.about.series,
        before=digits(change.before),
        after=f"{digits(change.after)} {line.about.unit}".rstrip(),
        effect="" if change.effect is None else f"{change.effect:+.1%}",
        interval="" if span is None else f"{span[0]:+.1%} to {span[1]:+.1%}",
        chance=f"{change.chance:.2g}",
        runs=line.said.runs if reported is tonight else None,
        first_bad=reported.first_bad,
        last_good=reported.last_good,
        first_bad_link=links(reported.first_bad),
        last_good_link=links(reported.last_good),
        why=line.causes.get(reported.first_bad, _kind(line, reported)),
    )


def _worse(line: SeriesResult, reported: ReportedChange) -> bool:
    return direction(reported.change, better_of(line.about.better)) == "REGRESSED"


def _kind(line: SeriesResult, reported: ReportedChange) -> str:
    known = better_of(line.about.better) != "unknown"
    return reported.change.kind if known else f"{reported.change.kind}; direction unknown"


def waiting(found: Sequence[ScenarioResult], links: Links) -> list[ChangeRow]:
    """Return the changes of earlier nights that no user has acknowledged: changes for the worse first, newest first."""
    old = [(each, line, one) for each in found for line in each.lines for one in line.waiting]
    old.sort(key=lambda each: each[2].first_bad, reverse=True)
    old.sort(key=lambda each: not _worse(each[1], each[2]) or each[2].first_bad in each[1].causes)
    return [change_row(*each, links) for each in old]


def document(found: Sequence[ScenarioResult], points: Mapping[str, RecentValues], links: Links) -> dict[str, Any]:
    """Return the content of the page: scenarios with their newest runs, and the values of each series."""
    versions: dict[str, int] = {}
    every = [_scenario(each, points, versions) for each in found]
    runs = {run for each in every for run in each["ids"]} | {
        run for each in every for s in each["series"] for c in s["changes"] for run in (c["first_bad"], c["last_good"])
    }
    return {
        "scenarios": every,
        "versions": list(versions),
        "words": dict(WORDS),
        "states": dict(STATES),
        "links": {run: link for run in sorted(runs) if (link := links(run)) is not None},
    }


def _scenario(each: ScenarioResult, points: Mapping[str, RecentValues], versions: dict[str, int]) -> dict[str, Any]:
    own = [points[line.about.series] for line in each.lines if line.about.series in points]
    kafka = {run: version for p in own for run, version in zip(p.ids, p.kafka, strict=True)}
    ids = sorted(kafka)
    at = {run: index for index, run in enumerate(ids)}
    return {
        "name": each.name,
        "experiment": each.experiment,
        "parameters": {name: str(value) for name, value in each.parameters.items()},
        "environment": {name: _plain(value) for name, value in each.environment.items()},
        "ids": ids,
        "kafka": [versions.setdefault(kafka[run], len(versions)) for run in ids],
        "series": [_series(line, points.get(line.about.series), at) for line in each.lines],
    }


def _series(line: SeriesResult, own: RecentValues | None, at: Mapping[str, int]) -> dict[str, Any]:
    values: list[float | None] = [None] * len(at)
    for run, value in zip(own.ids, own.values, strict=True) if own is not None else ():
        values[at[run]] = _rounded(value)
    changes = [_change(line, one, at) for one in line.changes]
    return {
        "id": line.about.series,
        "metric": line.about.metric,
        "unit": line.about.unit,
        "verdict": line.verdict,
        "why": line.why,
        "detectable": line.said.detectable,
        "values": values,
        "changes": changes,
        "levels": levels(values, [each["at"] for each in changes if each["at"] is not None]),
    }


def _change(line: SeriesResult, one: ReportedChange, at: Mapping[str, int]) -> dict[str, Any]:
    change, tonight = one.change, line.tonight
    span = change.interval
    return {
        "at": at.get(one.first_bad),
        "kind": change.kind,
        "worse": _worse(line, one),
        "before": _rounded(change.before),
        "after": _rounded(change.after),
        "effect": change.effect,
        "interval": None if span is None else list(span),
        "p": change.chance,
        "first_bad": one.first_bad,
        "last_good": one.last_good,
        "cause": line.causes.get(one.first_bad, ""),
        "reason": one.acknowledged.reason if one.acknowledged else None,
        "tonight": tonight is not None and one.first_bad == tonight.first_bad,
    }


def levels(values: Sequence[float | None], cuts: Sequence[int]) -> list[tuple[int, int, float]]:
    """Return (first, last, median) of the values between changes, which begin at `cuts`. Pure."""
    found = []
    edges = [0, *sorted(set(cuts) - {0}), len(values)]
    for begin, end in itertools.pairwise(edges):
        known = [value for value in values[begin:end] if value is not None]
        if known:
            found.append((begin, end - 1, statistics.median(known)))
    return found


def _rounded(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
