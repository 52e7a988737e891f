"""Qualify a release against others: scenarios, incidents, upgrades, performance."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from results.render import document
from testbed.cli.options import add_comparison, add_repeatable
from testbed.cli.output import require_writable, timed_progress, write
from testbed.errors import UsageError
from testbed.paths import reports_dir
from testbed.runner.qualification_scope import SUITES, QualificationScope

if TYPE_CHECKING:
    from results.compare.qualification import Qualification
    from testbed.runner.campaign import Campaign


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kafka", metavar="CANDIDATE", help="the release: a version, a tarball, a build's path or an imported build"
    )
    parser.add_argument(
        "--against",
        metavar="BASELINE",
        nargs="+",
        action="extend",
        default=[],
        help="a release to compare with, in the same forms; one or several",
    )
    add_repeatable(
        parser, "--suite", "SUITE", f"run the scenarios of this suite (default: {', '.join(SUITES)}); repeatable"
    )
    add_repeatable(
        parser,
        "--scenario",
        "SUITE/NAME",
        "run only this scenario, or this upgrade or downgrade by its name in the report; repeatable",
    )
    pairs = parser.add_mutually_exclusive_group()
    pairs.add_argument(
        "--paired",
        metavar="SUITE/NAME",
        action="append",
        help="compare performance in this scenario (default: three of kip73, and s3/unthrottled); repeatable",
    )
    pairs.add_argument("--no-pairs", action="store_true", help="compare no performance")
    parser.add_argument(
        "--pairs",
        type=int,
        metavar="N",
        help="runs of each version in a comparison (default: 10, or as many as so many comparisons need)",
    )
    parser.add_argument("--no-upgrade", action="store_true", help="play no rolling upgrade or downgrade")
    add_comparison(parser, "qualification", "6h")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="the folder of the page (default: under the XDG data folder)"
    )
    parser.add_argument(
        "--junit", metavar="FILE", type=Path, help="write JUnit's XML to this file (default: in the folder of the page)"
    )
    parser.epilog = (
        "Example: `testbed qualify --kafka 4.3.1 --against 4.2.1 --budget 8h`.\n"
        "Exit codes: 0 OK or IMPROVED, 1 REGRESSED, 2 NOISY, ENV-CHANGED, NO-DATA, or not all was run."
    )


def run(args: argparse.Namespace) -> int:
    from testbed.cli.campaign_output import refuse_with_resume
    from testbed.runner.execution import parse_budget
    from testbed.runner.qualification import qualify

    if not args.kafka and not args.resume:
        raise UsageError("name the release: --kafka CANDIDATE --against BASELINE…")
    if args.resume and not args.kafka:
        refuse_with_resume(args, "repeat the whole command, with --kafka and --against")
    budget_s = parse_budget(args.budget)
    require_writable(args.junit, args.out and args.out / "index.html")
    asked = _campaign(args) if args.kafka else None
    return _report(qualify(asked, args.resume, budget_s, timed_progress(), all_pairs=args.all), args)


def _campaign(args: argparse.Namespace) -> "Campaign":
    from testbed.cli.campaign_output import or_else, store_for
    from testbed.runner.qualification import new_qualification

    paired = () if args.no_pairs else tuple(args.paired) if args.paired else None
    scope = QualificationScope(
        args.profile or "ci",
        tuple(dict.fromkeys(args.suite)) or SUITES,
        tuple(args.scenario),
        paired,
        args.pairs,
        not args.no_upgrade,
        tuple(args.measure),
    )
    return new_qualification(
        args.kafka,
        args.against,
        scope,
        or_else(args.seed, 1),
        store=store_for(args),
        threshold=or_else(args.threshold, 3.0) / 100,
    )


def _report(found: "Qualification", args: argparse.Namespace) -> int:
    """Write the page and the JUnit file, print the result in the chosen format; return the exit code."""
    from results.compare.qualification_text import as_json, as_junit, headline, lines, markdown
    from results.verdicts import EXIT
    from testbed.runner.qualification import write as write_reports

    page, junit = write_reports(found, args.out or reports_dir() / found.id)
    if args.junit:
        write(args.junit, as_junit(found))
        junit = args.junit
    if args.json:
        print(document({**as_json(found), "report": page, "junit": junit}))
    elif args.markdown:
        print(markdown(found), end="")
    else:
        for line in lines(found):
            print(line)
        print(f"\n{found.verdict}  {headline(found)}: {found.ended}")
    if not found.complete:
        print(f"{found.ended}; `testbed qualify --resume {found.id}` continues it", file=sys.stderr)
    print(f"report {page}\njunit {junit}", file=sys.stderr)
    return EXIT[found.verdict]
