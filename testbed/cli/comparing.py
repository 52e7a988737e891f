"""`testbed run NAME` of a named comparison: a campaign, its table, its page."""

import argparse

from results.report.sweep import growth
from testbed.cli.campaign_output import against, as_json, ending, problem_lines, store_for, variants_table
from testbed.cli.output import TimedProgress
from testbed.errors import UsageError
from testbed.runner.campaign import new_campaign
from testbed.runner.execution import parse_budget
from testbed.runner.named_comparisons import COMMAND, NamedComparison
from testbed.runner.report import sweep_page, write_sweep
from testbed.runner.run import CampaignResult, run_campaign

OPTIONS = ("repeats", "seed", "budget", "resume")
"""Options that a single run does not have."""


def refuse(args: argparse.Namespace) -> None:
    """Raise `UsageError` when a single run has an option of a comparison."""
    given = [f"--{name}" for name in OPTIONS if getattr(args, name) is not None]
    if given:
        raise UsageError(f"{', '.join(given)}: {args.experiment} is one run; `testbed sweep` makes several")


def compare(args: argparse.Namespace, comparison: NamedComparison) -> int:
    """Make the runs of a comparison, or resume them; return the exit code."""
    if args.on:
        raise UsageError(f"{comparison.name} makes its own testbeds: leave --on out")
    asked = new_campaign(
        COMMAND,
        comparison.variants(args.set, args.profile, args.kafka, args.topology),
        comparison.repeats if args.repeats is None else args.repeats,
        1 if args.seed is None else args.seed,
        store=store_for(args),
        measure_names=comparison.measures,
    )
    result = run_campaign(asked, args.resume, COMMAND, parse_budget(args.budget), TimedProgress())
    code = exit_code(result)
    report = write_sweep(result)
    if args.json:
        print(as_json(result, ("pass", "fail", "inconclusive")[code], report))
    else:
        print(variants_table(result))
        for each in growth(sweep_page(result)):
            print(each)
        print(f"{against(result)}\n{problem_lines(result)}{result.campaign.id}: {ending(result)}\nreport {report}")
    return code


def exit_code(result: CampaignResult) -> int:
    """Return 0 when every run passed, 1 when one failed, 2 when one was inconclusive or is missing."""
    rows = result.outcome.rows
    if any(row.runs.get("fail") for row in rows):
        return 1
    made = sum(row.runs.get("pass", 0) for row in rows)
    return 0 if made == len(result.campaign.slots) else 2
