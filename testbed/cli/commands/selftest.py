"""`testbed selftest`."""

import argparse
from pathlib import Path

from testbed.cli.command import Command

WAYS = ("run", "brief", "compare", "nightly", "qualify")
"""As in `testbed.runner.selftest`, whose import takes a second."""
OF_A_NEW_ONE = ("defect", "by", "case", "history", "repeats", "healthy", "kafka", "seed", "store")
"""The options that choose the runs of a new self-test."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--defect",
        metavar="NAME[@HOST,…][:key=value,…]",
        action="append",
        default=[],
        help="only this one (may be repeated; a name alone: each of its sizes; A+B: both at once)",
    )
    parser.add_argument(
        "--by",
        choices=WAYS,
        help="by one run (default), by the suite brief, by pairs, by nights of brief, or as a qualification's scenario",
    )
    parser.add_argument(
        "--case",
        metavar="NAME",
        action="append",
        default=[],
        help="of the suite brief: only this one (may be repeated)",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        metavar="N",
        help="plays of each defect (default: 1), pairs (8), nights (3), or runs of each version (3)",
    )
    parser.add_argument(
        "--healthy", type=int, metavar="N", help="plays of healthy brokers for each experiment (default: as --repeats)"
    )
    parser.add_argument("--history", type=int, metavar="N", help="of nights: healthy ones before (default: 10)")
    parser.add_argument("--kafka", metavar="VERSION", help="a release, or the path of a build")
    parser.add_argument("--seed", type=int, metavar="N", help="draws the order of the runs (default: 1)")
    parser.add_argument("--budget", metavar="TIME", help="begin nothing that would not be done in this time, as 2h")
    parser.add_argument("--resume", metavar="ID", help="go on with an interrupted self-test; repeats nothing")
    parser.add_argument("--store", metavar="URI", help="where its runs go (default: a store of self-tests alone)")
    parser.add_argument("--out", metavar="FILE.md", type=Path, help="write the table there, as Markdown")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.epilog = (
        "exit codes: 0 every defect was found and healthy brokers gave no alarm, 1 a defect was missed or there was "
        "an alarm, 2 it is not known"
    )


def _run(args: argparse.Namespace) -> int:
    from testbed.cli.campaign_output import or_else, refuse_with_resume
    from testbed.cli.output import TimedProgress, require_writable, write
    from testbed.cli.selftests import as_json, as_markdown, as_text
    from testbed.runner.execution import parse_budget
    from testbed.runner.selftest import RUN, SelftestRequest, selftest, way_of

    if args.resume:
        refuse_with_resume(args, OF_A_NEW_ONE, "without --resume")
    budget_s = parse_budget(args.budget)
    require_writable(args.out)
    asked = SelftestRequest(
        defects=tuple(args.defect),
        by=args.by or RUN,
        repeats=args.repeats,
        healthy=args.healthy,
        history=args.history,
        cases=tuple(args.case),
        kafka=args.kafka,
        seed=or_else(args.seed, 1),
        store=args.store,
    )
    result = selftest(None if args.resume else asked, args.resume, budget_s, TimedProgress())
    if args.out:
        write(args.out, as_markdown(result, way_of(result.campaign)))
    print(as_json(result) if args.json else as_text(result))
    return result.exit_code


COMMAND = Command("selftest", "play every defect on real brokers: what is found, and what is not", _configure, _run)
