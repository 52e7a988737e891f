"""`testbed suite NAME`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", nargs="?", help="its name; without one the suites there are, and their cases")
    parser.add_argument("--profile", default="ci", help="smoke, ci (default) or release")
    parser.add_argument("--only", metavar="CASE", action="append", default=[], help="this case; may be repeated")
    parser.add_argument("--kafka", metavar="VERSION", help="run this Kafka: a release, or the path of a build")
    parser.add_argument("--store", metavar="URI", help="the result store (default: under the XDG data folder)")
    parser.add_argument("--out", metavar="DIR", help="report, JUnit file and evidence go here; new or empty")
    parser.add_argument(
        "--retry-noisy",
        metavar="N",
        type=int,
        default=0,
        help="run a case again, N times at most, that only the machine made inconclusive (default 0)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.epilog = "exit codes: 0 every case passed, 1 one failed or was not done, 2 one was inconclusive"


def _run(args: argparse.Namespace) -> int:
    from testbed.cli.output import TimedProgress
    from testbed.cli.suites import as_json, as_text, suites_table
    from testbed.runner.case import EXIT
    from testbed.runner.suite import SuiteRequest, run_suite

    if args.suite is None:
        print(suites_table())
        return 0
    request = SuiteRequest(
        args.suite, args.profile, tuple(args.only), args.kafka, args.store, args.out, args.retry_noisy
    )
    finished = run_suite(request, TimedProgress())
    print(as_json(finished) if args.json else as_text(finished))
    return EXIT[finished.ending]


COMMAND = Command("suite", "run a suite of experiments through ducktape", _configure, _run)
