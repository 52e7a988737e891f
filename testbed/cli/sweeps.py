"""Sweeps: the campaigns of `testbed sweep` and of named comparisons (`testbed run NAME`), their tables and pages."""

import argparse

from results.contract.verdict import VERDICTS
from results.report.sweep import as_markdown as page_as_markdown
from results.report.sweep import growth
from testbed.cli import campaign_output
from testbed.errors import UsageError
from testbed.runner.campaign import new_campaign
from testbed.runner.campaign_run import CampaignResult
from testbed.runner.named_comparisons import COMMAND, NamedComparison
from testbed.runner.report import sweep_page, write_sweep

OPTIONS = ("repeats", "seed", "budget", "resume")
"""Options that a single run does not have."""


def refuse(args: argparse.Namespace) -> None:
    """Raise `UsageError` when a single run has an option of a comparison."""
    given = [f"--{name}" for name in OPTIONS if getattr(args, name) is not None]
    if given:
        raise UsageError(f"{', '.join(given)}: {args.experiment} is one run; `testbed sweep` makes several")


def resume(args: argparse.Namespace) -> int:
    """Continue the comparison that `--resume` alone names; return the exit code. Raise `UsageError` without one."""
    if not args.resume:
        raise UsageError("name an experiment or a comparison (`testbed experiments` lists them), or --resume ID")
    campaign_output.refuse_with_resume(args, "repeat the whole command, with the comparison")
    return report(campaign_output.play(args, None, COMMAND, stop_early=False), as_json=args.json)


def compare(args: argparse.Namespace, comparison: NamedComparison) -> int:
    """Make the runs of a comparison, or resume them; return the exit code."""
    if args.on:
        raise UsageError(f"{comparison.name} makes its own testbeds: leave --on out")
    if args.defect:
        raise UsageError(f"--defect: {comparison.name} takes a defect as a setting: --set defect={args.defect[0]}")
    asked = new_campaign(
        COMMAND,
        comparison.variants(args.set, args.profile or "ci", args.kafka, args.topology),
        campaign_output.or_else(args.repeats, comparison.repeats),
        campaign_output.or_else(args.seed, 1),
        store=campaign_output.store_for(args),
        measure_names=comparison.measures,
    )
    return report(campaign_output.play(args, asked, COMMAND, stop_early=False), as_json=args.json)


def report(result: CampaignResult, *, as_json: bool, as_markdown: bool = False) -> int:
    """Write the page, print the result; return 0 when every run passed, 1 when one failed, else 2."""
    rows = result.outcome.rows
    passed = sum(row.runs.get("pass", 0) for row in rows)
    code = 1 if any(row.runs.get("fail") for row in rows) else 0 if passed == len(result.campaign.slots) else 2
    page, path = sweep_page(result), write_sweep(result)
    if as_json:
        print(campaign_output.as_json(result, VERDICTS[code], path))
    elif as_markdown:
        print(page_as_markdown(page))
    else:
        print(campaign_output.variants_table(result))
        if result.campaign.command == COMMAND:
            for each in growth(page):
                print(each)
        problems, ending = campaign_output.problem_lines(result), campaign_output.ending(result)
        print(f"{campaign_output.against(result)}\n{problems}{result.campaign.id}: {ending}\nreport {path}")
    return code
