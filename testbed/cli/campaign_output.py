"""Common parts of commands that run campaigns: their beginning, and the output of a comparison."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from results.compare.judgement import ComparisonRule, of_records
from results.compare.log_lines import LOG_LINES, LineChange
from results.compare.render import COLUMNS, comparison_document, comparison_row
from results.contract.texts import digits, plural
from results.render import NOTHING, JUnitCase, document, escaped, junit, markdown_table, table
from results.report.tradeoff import growths
from results.verdicts import EXIT
from testbed.cli.output import timed_progress
from testbed.errors import UsageError
from testbed.runner.campaign import Campaign
from testbed.runner.campaign_run import CampaignResult, run_campaign
from testbed.runner.comparison import CampaignOutcome, CriterionRegression, VariantRow
from testbed.runner.execution import parse_budget
from testbed.runner.journal import stored
from testbed.runner.named_comparisons import COMMAND
from testbed.runner.variant import differing

T = TypeVar("T")
_OF_ANY_CAMPAIGN = ("resume", "budget", "all", "json", "markdown", "junit", "out")
"""The options that do not choose the runs: a resumed campaign may have others than before."""


def findings_table(outcome: CampaignOutcome) -> str:
    """Return a line per candidate and measure, with the reason unless it is obvious."""
    measured = [comparison_row(finding, finding.comparison.candidate) for finding in outcome.findings]
    rows = [
        (each.verdict, each.scenario, each.measure, each.change, each.interval, each.p, each.why) for each in measured
    ]
    rows += [
        (each.verdict, each.candidate, each.criterion, NOTHING, NOTHING, _adjusted(each), _broken(each))
        for each in outcome.broken
    ]
    rows += [
        (each.verdict, each.candidate, LOG_LINES, NOTHING, NOTHING, _adjusted(each), str(each))
        for each in outcome.lines
    ]
    return table(("VERDICT", "VARIANT", "MEASURE", "CHANGE", "95 % INTERVAL", "ADJUSTED P", "WHY"), rows)


def _adjusted(each: CriterionRegression | LineChange) -> str:
    return NOTHING if each.adjusted is None else f"{each.adjusted:.2g}"


def against(result: CampaignResult) -> str:
    """Return the comparison of the variants with the first one, or a note when there are too few repeats."""
    first, repeats, need = result.campaign.variants[0].label, result.campaign.repeats, ComparisonRule().fewest_pairs
    if not result.outcome.findings:
        return ""
    if repeats < need:
        return f"\nnot compared with {first}: --repeats {repeats}, and {need} are needed to tell a change from noise\n"
    return f"\nagainst {first}:\n{findings_table(result.outcome)}\n"


def _broken(each: CriterionRegression) -> str:
    counts = f"of {each.of} pairs judged on it, it fails in {each.runs} for this variant alone, "
    counts += f"in {each.reverse} for the baseline alone"
    counts += f", and in {plural(each.unpaired, 'run')} without a judged run of the baseline" if each.unpaired else ""
    if each.verdict == "REGRESSED":
        return counts
    what = "no machine loses a record: read its report"
    return f"{counts}: {what if of_records(each.criterion) else 'chance explains that, too; make more pairs'}"


def variants_table(result: CampaignResult) -> str:
    """Return a line per variant: verdicts, medians, ranges; then per broken variant, and per run that did not pass."""
    names = result.campaign.measures
    rows = [
        (
            row.label,
            *(row.runs.get(verdict, 0) for verdict in ("pass", "fail", "inconclusive")),
            *(_median(row, name) for name in names),
        )
        for row in result.outcome.rows
    ]
    text = table(("VARIANT", "PASS", "FAIL", "INCONCLUSIVE", *names), rows)
    broken = [f"BROKEN ON PURPOSE: {v.label}: {', '.join(v.defects)}" for v in result.campaign.variants if v.defects]
    text = "\n".join([*broken, text])
    bad = [words for row in result.outcome.rows for words in row.not_passed]
    if not bad:
        return text
    return "\n".join([text, "", *bad, "`testbed results show RUN` says why; what is inconclusive is in no figure"])


def _median(row: VariantRow, name: str) -> str:
    if name not in row.medians:
        return NOTHING
    low, high = row.ranges[name]
    median = digits(row.medians[name])
    return median if low == high else f"{median} ({digits(low)} to {digits(high)})"


def ending(result: CampaignResult) -> str:
    """Return why the campaign ended, and how to resume it if that is possible."""
    command, series = result.campaign.command, result.campaign.id
    again = (
        f"the same command with --resume {series}" if command == COMMAND else f"`testbed {command} --resume {series}`"
    )
    more = "" if result.complete else f"; {again} continues it"
    return f"{result.why_ended}{more}"


def as_json(result: CampaignResult, verdict: str, report: Path | None = None) -> str:
    """Return one JSON document: campaign, verdict, variants, findings, broken criteria."""
    series = result.campaign
    axes, _values = differing(series.variants)
    return document(
        {
            "series": series.id,
            "verdict": verdict,
            "ended": result.why_ended,
            "complete": result.complete,
            "problems": result.problems,
            "seed": series.seed,
            "threshold": series.threshold,
            "store": series.store,
            "report": report,
            "variants": [
                {
                    "label": row.label,
                    "settings": dict(zip(axes, row.values, strict=True)),
                    "defects": series.variant(row.label).defects,
                    "runs": row.runs,
                    "medians": row.medians,
                    "ranges": row.ranges,
                    "not_passed": row.not_passed,
                    "run_ids": row.ids,
                }
                for row in result.outcome.rows
            ],
            "findings": [
                {
                    "baseline": each.comparison.baseline,
                    "candidate": each.comparison.candidate,
                    "pairs": each.comparison.pairs,
                    **comparison_document(each),
                }
                for each in result.outcome.findings
            ],
            "broken": result.outcome.broken,
            "log_lines": result.outcome.lines,
            "growth": [asdict(each) | {"word": each.word} for each in growths(axes, result.outcome.rows)],
        }
    )


def as_markdown(result: CampaignResult) -> str:
    """Return tables for a pull request's comment: every comparison, criteria that fail more often, new log lines."""
    series, outcome = result.campaign, result.outcome
    first = series.variants[0]
    lines = [f"### {outcome.verdict}: {escaped(first.experiment)}, against {escaped(first.label)}"]
    measured = [comparison_row(finding, finding.comparison.candidate) for finding in outcome.findings]
    lines += ["", *markdown_table(("", "variant", *COLUMNS[2:]), [each.cells for each in measured])]
    if outcome.broken:
        rows = [
            (each.verdict, each.candidate, each.criterion, _adjusted(each), _broken(each)) for each in outcome.broken
        ]
        lines += ["", *markdown_table(("", "variant", "criterion", "adjusted p", "why"), rows)]
    if outcome.lines:
        logged = [(each.verdict, each.candidate, _adjusted(each), str(each)) for each in outcome.lines]
        lines += ["", *markdown_table(("", "variant", "adjusted p", "new in the logs"), logged)]
    lines += [f"\n**Not run:** {escaped(problem)}" for problem in result.problems]
    ended = "" if result.complete else "**not complete**: "
    return "\n".join([*lines, "", f"{ended}{escaped(ending(result))}"]) + "\n"


def as_junit(result: CampaignResult) -> str:
    """Return JUnit with a case for each finding, and for the end: an error if missing runs leave the verdict open."""
    name = result.campaign.variants[0].experiment
    compared = [(finding, comparison_row(finding, finding.comparison.candidate)) for finding in result.outcome.findings]
    cases = [
        JUnitCase.of_verdict(f"{each.scenario}: {each.measure}", name, finding.verdict, str(each), str(each))
        for finding, each in compared
    ]
    cases += [
        JUnitCase.of_verdict(f"{each.candidate}: {each.criterion}", name, each.verdict, _broken(each), _broken(each))
        for each in result.outcome.broken
    ]
    cases += [each.as_case(name) for each in result.outcome.lines]
    says_all = result.complete or EXIT[result.outcome.verdict] == 0
    notes = "\n".join([*result.problems, ending(result)])
    cases += [JUnitCase("how it ended", name, output=notes)] if says_all else []
    return junit(f"compare {name}", cases, () if says_all else (*result.problems, ending(result)))


def problem_lines(result: CampaignResult) -> str:
    """Return a line for each variant with a missing run, and a blank line; empty when there is none."""
    return "".join(f"{problem}\n" for problem in result.problems) + ("\n" if result.problems else "")


def play(args: argparse.Namespace, asked: Campaign | None, command: str, *, stop_early: bool) -> CampaignResult:
    """Begin the campaign, or go on with the one that `--resume` names; return its result."""
    return run_campaign(asked, args.resume, command, parse_budget(args.budget), timed_progress(), stop_early=stop_early)


def or_else(value: T | None, default: T) -> T:
    """Return the given value, or the default when it is None."""
    return default if value is None else value


def store_for(args: argparse.Namespace) -> str | None:
    """Return the named store, the resumed campaign's, or None. Raise `UsageError` for an unknown campaign."""
    return args.store or (stored(args.resume).store if args.resume else None)


def refuse_with_resume(args: argparse.Namespace, instead: str) -> None:
    """Raise `UsageError` when a resumed campaign has only some of the options that choose its runs.

    They cannot be compared with the original options, and would have no effect. `instead` is what else to do.
    """
    given = [
        f"--{name.replace('_', '-')}"
        for name, value in vars(args).items()
        if name not in _OF_ANY_CAMPAIGN and value is not None and value is not False and value != []
    ]
    if given:
        raise UsageError(
            f"{', '.join(given)} with --resume {args.resume}: the options of a campaign are fixed when it begins; "
            f"leave out what is not --resume, or {instead}"
        )
