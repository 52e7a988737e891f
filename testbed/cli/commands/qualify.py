"""`testbed qualify`."""

import argparse
from pathlib import Path

from testbed.cli.command import Command

OF_A_NEW_ONE = (
    *("against", "profile", "suite", "scenario", "paired", "no_pairs", "pairs", "no_upgrade"),
    *("measure", "threshold", "seed", "store"),
)
"""The options that choose the runs of a new campaign."""


def _configure(parser: argparse.ArgumentParser) -> None:
    from testbed.cli.options import add_formats
    from testbed.runner.qualification_scope import SUITES

    parser.add_argument("--kafka", metavar="CANDIDATE", help="a version, a tarball, a built tree or an imported build")
    parser.add_argument(
        "--against", metavar="BASELINE", nargs="+", action="extend", default=[], help="the same; one or several"
    )
    parser.add_argument("--profile", help="smoke, ci (default) or release")
    parser.add_argument(
        "--suite",
        action="append",
        default=[],
        help=f"run the cases of this suite (may be repeated; default: {', '.join(SUITES)})",
    )
    parser.add_argument(
        "--scenario",
        metavar="SUITE/CASE",
        action="append",
        default=[],
        help="run only this case, or this upgrade or downgrade by its name in the report (may be repeated)",
    )
    pairs = parser.add_mutually_exclusive_group()
    pairs.add_argument(
        "--paired",
        metavar="SUITE/CASE",
        action="append",
        help="compare performance in this one (may be repeated; default: three of kip73)",
    )
    pairs.add_argument("--no-pairs", action="store_true", help="compare no performance")
    parser.add_argument("--pairs", type=int, metavar="N", help="runs of each version there (default: 10)")
    parser.add_argument("--no-upgrade", action="store_true", help="leave the rolling upgrades and downgrades out")
    parser.add_argument("--measure", metavar="NAME", action="append", default=[], help="compare only these")
    parser.add_argument("--threshold", type=float, metavar="PERCENT", help="a change that counts (default: 3)")
    parser.add_argument("--all", action="store_true", help="make every pair, also when the answer is known before")
    parser.add_argument("--budget", metavar="TIME", help="begin nothing that would not be done in this time, as 6h")
    parser.add_argument("--resume", metavar="ID", help="go on with an interrupted qualification; repeats nothing")
    parser.add_argument("--seed", type=int, metavar="N", help="draws the order of the runs (default: 1)")
    parser.add_argument("--store", metavar="URI", help="the result store (default: under the XDG data folder)")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="where the page goes (default: in the folder of reports)"
    )
    parser.add_argument(
        "--junit", metavar="FILE", type=Path, help="write JUnit's XML there (default: in the page's folder)"
    )
    add_formats(parser)
    parser.epilog = "exit codes: 0 OK or IMPROVED, 1 REGRESSED, 2 NOISY, ENV-CHANGED, NO-DATA, or not all was run"


def _run(args: argparse.Namespace) -> int:
    from testbed.cli.campaign_output import refuse_with_resume
    from testbed.cli.output import TimedProgress, require_writable
    from testbed.cli.qualifying import asked_for, report
    from testbed.errors import UsageError
    from testbed.runner.execution import parse_budget
    from testbed.runner.qualification import qualify

    if not args.kafka and not args.resume:
        raise UsageError("name the release: --kafka CANDIDATE --against BASELINE…")
    if args.resume and not args.kafka:
        refuse_with_resume(args, OF_A_NEW_ONE, "--kafka and --against")
    budget_s = parse_budget(args.budget)
    require_writable(args.junit, args.out and args.out / "index.html")
    asked = asked_for(args) if args.kafka else None
    return report(qualify(asked, args.resume, budget_s, TimedProgress(), all_pairs=args.all), args)


COMMAND = Command("qualify", "hold a release against others: every scenario, performance, upgrades", _configure, _run)
