"""Run a suite's scenarios, judge the store, write report and JUnit file."""

import argparse
from pathlib import Path

from testbed.cli.options import add_campaign, add_earlier, add_formats, add_judging, add_kafka, add_repeatable
from testbed.cli.output import require_writable, timed_progress


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", metavar="SUITE", help="the suite; `testbed suite` lists them (default: kip73)")
    add_repeatable(parser, "--scenario", "NAME", "only this scenario; repeatable")
    add_earlier(parser, "--case", "scenario", action="append")
    add_kafka(parser, "the topologies'")
    parser.add_argument(
        "--repeats",
        metavar="N",
        type=int,
        help="runs of each scenario, to begin a history (default: one, and two more if it is in doubt)",
    )
    add_campaign(parser, "night", "2h")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="the folder of report and JUnit file (default: under the XDG data folder)",
    )
    parser.add_argument(
        "--junit",
        metavar="FILE",
        type=Path,
        help="write JUnit's XML to this file (default: in the folder of the report)",
    )
    add_formats(parser)
    add_judging(parser)
    parser.epilog = (
        "Example: `testbed nightly --suite brief --budget 1h`.\n"
        "Exit codes: 0 OK, IMPROVED, LEARNING or MUTED; 1 FAILED, BELOW-FLOOR or REGRESSED;\n"
        "2 ENV-CHANGED, NO-DATA, NOISY, or a scenario that was not run. 1 takes precedence."
    )


def run(args: argparse.Namespace) -> int:
    from testbed.cli.nights import report_night
    from testbed.cli.store_maintenance import store_errors
    from testbed.runner.execution import parse_budget
    from testbed.runner.nightly import NightRequest, new_night, not_run, require_same, run_night

    budget_s = parse_budget(args.budget)
    require_writable(args.junit, args.out and args.out / "index.html")
    wanted = NightRequest(
        args.suite, tuple(args.scenario), args.profile, args.kafka, args.repeats, args.seed, args.store
    )
    progress = timed_progress()
    with store_errors():
        asked = None if args.resume else new_night(wanted)
        if args.resume:
            require_same(args.resume, wanted)
        # Which suite an interrupted night is of is known only when the user names it again.
        for name, why in not_run(wanted).items() if asked or args.suite else ():
            progress(f"{name}: not run: {why}")
        made = run_night(asked, args.resume, budget_s, progress)
    return report_night(made, args)
