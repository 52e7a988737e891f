"""A suite of runs as one HTML page: a row for each case. Style is inlined; the runs' own reports are linked."""

from dataclasses import dataclass

from results.contract.manifest import Manifest, Move
from results.contract.texts import plural
from results.criteria import Judgement
from results.criteria.measures import MoveMeasures
from results.criteria.model import estimate, worst
from results.criteria.quantities import rate, size
from results.render import NOTHING
from results.report.page import Figure
from results.report.render import inline, template
from results.report.traffic import against

WORDS = {"pass": "Pass", "fail": "Fail", "inconclusive": "Inconclusive", "not done": "Not done"}
ICONS = {"not done": "fail"}
"""What has no icon of its own."""
HIDDEN = ("partitions", "preload")
"""Settings that hardly ever differ; a run's own report has all."""
RATES = ("rate", "inbound", "low", "lowered", "raised")
"""Settings in bytes per second."""
SIZES = ("size", "record-size", "read", "response")
"""Settings in bytes."""
OF_STEPS = ("mode", "replicas", "reassignment-batch-size", "leaders", "per-broker", "starts")
"""Settings that say nothing of a move that is not made in steps."""


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """One case. `ending` is a verdict or *not done*; links are relative to the page, None for what there is not."""

    name: str
    experiment: str
    topology: str
    ending: str
    why: str
    seconds: float
    run: Manifest | None
    judgement: Judgement | None
    report: str | None
    evidence: str | None
    disturbed: tuple[str, ...] = ()
    """Runs before it that only the machine made inconclusive, each with why."""


@dataclass(frozen=True, slots=True)
class SuitePage:
    """A suite that was run; `confirmed` when Spark has judged every run again, and alike."""

    suite: str
    summary: str
    profile: str
    started: str
    seconds: float
    ending: str
    cases: tuple[SuiteCase, ...]
    problems: tuple[str, ...]
    confirmed: bool
    not_run: tuple[tuple[str, str], ...] = ()
    """Cases that were not run, and why."""


@dataclass(frozen=True, slots=True)
class SuiteCell:
    """What a cell says, and what puts it in proportion."""

    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """A case as the table shows it."""

    case: SuiteCase
    state: str
    word: str
    settings: str
    share: SuiteCell
    took: SuiteCell
    clients: SuiteCell


def render_suite(page: SuitePage) -> str:
    """Return the page as HTML text."""
    rows = [_row(case) for case in page.cases]
    return template("suite.html.j2").render(
        page=page,
        state=ICONS.get(page.ending, page.ending),
        word="Fail" if page.ending == "not done" else WORDS[page.ending],
        answer=answer(page),
        figures=_figures(page),
        rows=rows,
        kafka=", ".join(sorted({v for c in page.cases if c.run for v in c.run.versions.kafka.values()})) or NOTHING,
        style=inline("templates/report.css") + inline("templates/suite.css"),
    )


def answer(page: SuitePage) -> str:
    """Return how many passed, and which did not."""
    by: dict[str, list[str]] = {}
    for case in page.cases:
        by.setdefault(case.ending, []).append(case.name)
    passed = len(by.pop("pass", []))
    parts = [f"{passed} of {plural(len(page.cases), 'case')} passed"]
    for ending, word in (("not done", "not done"), ("fail", "failed"), ("inconclusive", "inconclusive")):
        if names := by.get(ending):
            parts.append(f"{word}: {', '.join(names)}")
    return "; ".join(parts) + "."


def share_of_quota(move: Move, measures: MoveMeasures) -> SuiteCell:
    """Return the steady rate over the quota, or over each of several, where the model says that the quota binds."""
    where = _binding(move, measures)
    if where is None:
        return SuiteCell(NOTHING, "no steady part")
    host, direction = where
    phases = [(phase.quota_bytes_per_s, phase.rates) for phase in measures.phases]
    found = []
    for quota, rates in phases or [(move.quota_bytes_per_s, measures.rates)]:
        mine = next((each for each in rates if (each.host, each.direction) == where), None)
        if mine is not None and mine.steady_bytes_per_s is not None:
            found.append((mine.steady_bytes_per_s / quota, quota))
    if not found:
        return SuiteCell(NOTHING, f"{host} {direction}: no whole window in the steady part")
    quotas = ", ".join(dict.fromkeys(rate(quota) for _share, quota in found))
    return SuiteCell(", ".join(f"{share:.3f}" for share, _quota in found), f"{host} {direction}, of {quotas}")


def _binding(move: Move, measures: MoveMeasures) -> tuple[str, str] | None:
    """Return the host and direction that the model says to bind; without a model, those with the most bytes."""
    listed = [each for each in move.expected if each.bytes]
    if listed:
        bound = max(listed, key=lambda each: each.seconds(move.quota_bytes_per_s))
        return bound.host, bound.direction
    carried = max(measures.rates, key=lambda each: each.total_bytes, default=None)
    return None if carried is None else (carried.host, carried.direction)


def time_to_move(move: Move, measures: MoveMeasures) -> SuiteCell:
    """Return how long the move took, and how far the model and KIP-73's formula are from it."""
    found = estimate("", move, measures)
    took = found.observed_s if found.observed_s is not None else measures.throttled_s
    if took is None:
        return SuiteCell(NOTHING)
    lines = [] if found.predicted_s is None else [f"model {against(found.predicted_s, found.observed_s)}"]
    if found.predicted_s is None and move.model_why:
        lines.append(f"no model: {found.why}")
    kip73_s = found.kip73_s
    lines.append("KIP-73: never ends" if kip73_s is None else f"KIP-73 {against(kip73_s, found.observed_s)}")
    return SuiteCell(f"{took:.1f} s", "; ".join(lines))


def produce_p99(measures: MoveMeasures) -> SuiteCell:
    """Return what producers waited at most in 99 of 100 cases, before the move and during it."""
    before, during = measures.seen_by("produce", "before"), measures.seen_by("produce", "during")
    if during is None or during.p99_us is None:
        return SuiteCell(NOTHING)
    note = f"before {before.p99_us / 1000:.1f} ms" if before is not None and before.p99_us is not None else ""
    return SuiteCell(f"{during.p99_us / 1000:.1f} ms", note)


def _row(case: SuiteCase) -> SuiteRow:
    nothing = SuiteCell(NOTHING)
    move = case.run.move if case.run else None
    measures = case.judgement.measures if case.judgement else None
    parameters = case.run.parameters if case.run else {}
    hidden = (*HIDDEN, *(OF_STEPS if parameters.get("mode") == "unbatched" else ()))
    settings = ", ".join(f"{name} {_setting(name, value)}" for name, value in parameters.items() if name not in hidden)
    return SuiteRow(
        case,
        ICONS.get(case.ending, case.ending),
        WORDS[case.ending],
        settings,
        share_of_quota(move, measures) if move and measures else nothing,
        time_to_move(move, measures) if move and measures else nothing,
        produce_p99(measures) if measures else nothing,
    )


def _setting(name: str, value: str | int | float) -> str:
    """Return a setting's value, in its unit where it has one."""
    if isinstance(value, str):
        return value
    if name in RATES:
        return rate(value)
    return size(value) if name in SIZES else f"{value:.12g}"


def _figures(page: SuitePage) -> tuple[Figure, ...]:
    passed = sum(case.ending == "pass" for case in page.cases)
    found = [
        Figure("Passed", str(passed), f"of {len(page.cases)}", ""),
        Figure("Time", f"{page.seconds / 60:.1f}", "min", f"{sum(case.seconds for case in page.cases):.0f} s in cases"),
    ]
    estimates = [
        estimate(case.name, case.run.move, case.judgement.measures)
        for case in page.cases
        if case.run is not None and case.run.move is not None and case.judgement is not None
    ]
    furthest = worst(estimates)
    if furthest is not None and furthest.error is not None:
        compared = sum(each.error is not None for each in estimates)
        note = f"{furthest.name}; of {plural(compared, 'case')}"
        found.append(Figure("Largest error of the model", f"{furthest.error * 100:+.1f}", "%", note))
    return tuple(found)
