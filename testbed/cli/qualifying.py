"""`testbed qualify`: its options as a campaign, and the output of its result."""

import argparse
import sys

from results.compare.judgement import EXIT
from results.compare.qualification import Qualification, as_json, as_junit, headline, lines, markdown
from results.render import document
from testbed.cli.campaign_output import or_else, store_for
from testbed.cli.output import write as write_file
from testbed.paths import reports_dir
from testbed.runner.campaign import Campaign
from testbed.runner.qualification import new_qualification, write
from testbed.runner.qualification_scope import SUITES, QualificationScope


def asked_for(args: argparse.Namespace) -> Campaign:
    """Return the campaign that the options describe. Raise `UsageError` when it cannot be run."""
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


def report(found: Qualification, args: argparse.Namespace) -> int:
    """Write the page and the JUnit file, print the result in the chosen format; return the exit code."""
    page, junit = write(found, args.out or reports_dir() / found.id)
    if args.junit:
        write_file(args.junit, as_junit(found))
        junit = args.junit
    if args.json:
        print(document({**as_json(found), "report": str(page), "junit": str(junit)}))
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
