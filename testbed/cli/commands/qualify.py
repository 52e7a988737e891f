"""Hold a release against others: every scenario, performance, upgrades."""

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
    parser.add_argument("--kafka", metavar="CANDIDATE", help="a version, a tarball, a built tree or an imported build")
    parser.add_argument(
        "--against", metavar="BASELINE", nargs="+", action="extend", default=[], help="the same; one or several"
    )
    add_repeatable(
        parser, "--suite", "SUITE", f"run the cases of this suite (may be repeated; default: {', '.join(SUITES)})"
    )
    add_repeatable(
        parser,
        "--scenario",
        "SUITE/CASE",
        "run only this case, or this upgrade or downgrade by its name in the report (may be repeated)",
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
    add_comparison(parser, "qualification", "6h")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="where the page goes (default: in the folder of reports)"
    )
    parser.add_argument(
        "--junit", metavar="FILE", type=Path, help="write JUnit's XML there (default: in the page's folder)"
    )
    parser.epilog = "exit codes: 0 OK or IMPROVED, 1 REGRESSED, 2 NOISY, ENV-CHANGED, NO-DATA, or not all was run"


def run(args: argparse.Namespace) -> int:
    from testbed.cli.campaign_output import refuse_with_resume
    from testbed.runner.execution import parse_budget
    from testbed.runner.qualification import qualify

    if not args.kafka and not args.resume:
        raise UsageError("name the release: --kafka CANDIDATE --against BASELINE…")
    if args.resume and not args.kafka:
        refuse_with_resume(args, "--kafka and --against")
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
        or_else(args.pairs, 10),
        not args.no_upgrade,
    )
    return new_qualification(
        args.kafka,
        args.against,
        scope,
        or_else(args.seed, 1),
        store=store_for(args),
        measures=args.measure,
        threshold=or_else(args.threshold, 3.0) / 100,
    )


def _report(found: "Qualification", args: argparse.Namespace) -> int:
    """Write the page and the JUnit file, print the result in the chosen format; return the exit code."""
    from results.compare.judgement import EXIT
    from results.compare.qualification import as_json, as_junit, headline, lines, markdown
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
        print(f"{found.ended}; `testbed qualify --resume {found.id}` goes on", file=sys.stderr)
    print(f"report {page}\njunit {junit}", file=sys.stderr)
    return EXIT[found.verdict]
