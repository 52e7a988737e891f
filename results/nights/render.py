"""A night as text for a terminal, JSON, Markdown and JUnit. Pure."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from results.compare.log_lines import LOG_LINES
from results.contract.texts import digits, shortened
from results.nights.bucket import iso
from results.nights.scenarios import ScenarioResult, SeriesResult, worst
from results.render import NOTHING, Code, JUnitCase, escaped, markdown_table
from results.render import junit as junit_document
from results.series.history import ReportedChange


def lines(found: Sequence[ScenarioResult]) -> list[str]:
    """Return a line a scenario.

    Below it stands one for each change of tonight, one for each series that is listed for its noise or by a user, and
    one for each new kind of log lines. Another stands for each change that no user has acknowledged.
    """
    width = max((len(each.name) for each in found), default=0)
    rows = []
    for each in found:
        rows.append(f"{each.verdict:<11}  {each.name:<{width}}  {summary(each)}".rstrip())
        for line in each.lines:
            if line.tonight is not None:
                rows.append(f"{'':13}{line.about.metric} [{line.about.series}]: {change_words(line)}")
            if line.verdict in ("NOISY", "MUTED") and each.verdict != line.verdict:
                rows.append(f"{'':13}listed: {line.about.metric} [{line.about.series}] {line.verdict}, {line.why}")
            rows += [f"{'':13}{LOG_LINES}: {words}" for words in line.new_lines]
        rows += [f"{'':13}{_waits(line, one)}" for line in each.lines for one in line.waiting]
    return rows


def summary(each: ScenarioResult) -> str:
    """Return a scenario in one line: how many series, or which of them and why."""
    if each.verdict == "OK":
        listed = sum(not line.judged for line in each.lines)
        return f"{len(each.lines) - listed} series{f', {listed} listed' if listed else ''}{_of_kafka(each)}"
    metrics = [line.about.metric for line in each.lines if line.verdict == each.verdict]
    shown = ", ".join(shortened(metrics, 3))
    return ": ".join(part for part in (shown, each.why) if part)


def _of_kafka(each: ScenarioResult) -> str:
    return f", Kafka {each.kafka}" if each.kafka else ""  # a run of `bench` has none


def change_words(line: SeriesResult) -> str:
    """Return before, after, interval, adjusted p, runs, first bad and last good run."""
    reported = line.tonight
    if reported is None:
        return ""
    change = reported.change
    effect = f" ({change.effect:+.1%}, {interval(line)})" if change.effect is not None else ""
    return (
        f"{digits(change.before)} → {digits(change.after)} {line.about.unit}{effect}, p {change.chance:.2g}, "
        f"{line.said.runs} runs; first bad {reported.first_bad}, last good {reported.last_good}"
    )


def interval(line: SeriesResult) -> str:
    """Return the effect's 95 % interval."""
    span = line.tonight.change.interval if line.tonight is not None else None
    return NOTHING if span is None else f"{span[0]:+.1%} to {span[1]:+.1%}"


def _waits(line: SeriesResult, one: ReportedChange) -> str:
    about = line.about
    return (
        f"{about.metric} [{about.series}] was reported before, since {one.first_bad}, and is not acknowledged: "
        f"testbed results ack {about.series} --reason …"
    )


def as_json(store: str, found: Sequence[ScenarioResult], problems: Sequence[str], ingested: int) -> dict[str, Any]:
    """Return one document."""
    return {
        "store": store,
        "verdict": worst(found, problems),
        "newest": iso(max(each.newest for each in found)) if found else None,
        "ingested": ingested,
        "scenarios": [_scenario(each) for each in found],
        "problems": list(problems),
    }


def _scenario(each: ScenarioResult) -> dict[str, Any]:
    return {
        "scenario": each.id,
        "name": each.name,
        "experiment": each.experiment,
        "parameters": dict(each.parameters),
        "environment": dict(each.environment),
        "kafka": each.kafka,
        "run": each.run_id,
        "newest": iso(each.newest),
        "verdict": each.verdict,
        "why": each.why,
        "series": [_series(line) for line in each.lines],
    }


def _series(line: SeriesResult) -> dict[str, Any]:
    reported = line.tonight
    change = reported.change if reported is not None else None
    return {
        "series": line.about.series,
        "metric": line.about.metric,
        "unit": line.about.unit,
        "better": line.about.better,
        "verdict": line.verdict,
        "policy": "judged" if line.judged else "listed",
        "why": line.why,
        "runs": line.said.runs,
        "all_runs": line.about.runs,
        "chance": line.said.chance,
        "detectable": line.said.detectable,
        "kind": change and change.kind,
        "before": change and change.before,
        "after": change and change.after,
        "effect": change and change.effect,
        "interval": list(change.interval) if change and change.interval else None,
        "p": change and change.chance,
        "first_bad": reported and reported.first_bad,
        "last_good": reported and reported.last_good,
        "open": [asdict(one) for one in line.open],
        "log_lines": [asdict(one) for one in line.said.lines],
    }


def markdown(found: Sequence[ScenarioResult], problems: Sequence[str]) -> str:
    """Return tables for a pull request's comment: the scenarios, every change of tonight, and new log lines."""
    scenarios = [
        (each.verdict, each.name, each.kafka, str(len(each.lines)), "" if each.verdict == "OK" else summary(each))
        for each in found
    ]
    text = [f"### {worst(found, problems)}", ""]
    text += markdown_table(("verdict", "scenario", "Kafka", "series", "why"), scenarios)
    changes = [_change_row(each, line) for each in found for line in each.lines if line.tonight is not None]
    if changes:
        text += ["", *markdown_table(CHANGE_COLUMNS, changes)]
    logged = [(line.verdict, each.name, words) for each in found for line in each.lines for words in line.new_lines]
    if logged:
        text += ["", *markdown_table(("", "scenario", "new in the logs"), logged)]
    text += [f"\n**Problem:** {escaped(problem)}" for problem in problems]
    return "\n".join(text) + "\n"


CHANGE_COLUMNS = (
    *("", "scenario", "metric", "before", "after", "change"),
    *("95 %", "adjusted p", "runs", "first bad", "last good"),
)


def _change_row(each: ScenarioResult, line: SeriesResult) -> tuple[str, ...]:
    reported = line.tonight
    assert reported is not None
    change = reported.change
    return (
        line.verdict,
        each.name,
        line.about.metric,
        f"{digits(change.before)} {line.about.unit}",
        digits(change.after),
        NOTHING if change.effect is None else f"{change.effect:+.1%}",
        interval(line),
        f"{change.chance:.2g}",
        str(line.said.runs),
        Code(reported.first_bad),
        Code(reported.last_good),
    )


def junit(found: Sequence[ScenarioResult], problems: Sequence[str]) -> str:
    """Return JUnit's XML with a case for each scenario. Without one nothing was judged, which is an error, too."""
    nothing = () if found or problems else ("nothing to judge",)
    return junit_document("night", [_case(each) for each in found], [*problems, *nothing])


def _case(each: ScenarioResult) -> JUnitCase:
    detail = "\n".join(f"{line.about.metric}: {line.verdict} {change_words(line) or line.why}" for line in each.lines)
    output = f"{each.verdict} run {each.run_id}{_of_kafka(each)}"
    return JUnitCase.of_verdict(each.name, each.experiment, each.verdict, summary(each), detail, output)
