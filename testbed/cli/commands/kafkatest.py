"""`testbed kafkatest CHECKOUT [TEST…]`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkout", help="a checkout of Apache Kafka's sources")
    parser.add_argument(
        "tests", nargs="*", metavar="TEST", help="a file or folder, or FILE::CLASS.METHOD (default: every test)"
    )
    parser.add_argument(
        "--kafka",
        metavar="VERSION",
        help="the build under test: a release or a build's path (default: the checkout's)",
    )
    parser.add_argument("--hosts", metavar="N", type=int, help="how many hosts (default: as many as a test needs)")
    parser.add_argument("--nic", metavar="RATE", default="1gbit", help="of each host's NIC, both ways (default 1gbit)")
    parser.add_argument("--parameters", metavar="JSON", help="only with these arguments of a test, as for ducktape")
    parser.add_argument("--exclude", metavar="TEST", action="append", default=[], help="not this one; repeatable")
    parser.add_argument("--globals", metavar="JSON", help="ducktape's globals, which the tests read")
    parser.add_argument("--repeat", metavar="N", type=int, help="run each test N times")
    parser.add_argument("--max-parallel", metavar="N", type=int, default=1, help="tests at the same time (default 1)")
    parser.add_argument("--python", metavar="PATH", help="the Python for the tests' own environment")
    parser.add_argument(
        "--jvm",
        choices=["light", "kafka"],
        default="light",
        help="flags of Kafka's JVMs: light (default) for few cores, or kafka, the scripts' own",
    )
    parser.add_argument("--name", help="what to call the testbed (default: a new name)")
    parser.add_argument("--keep", action="store_true", help="leave the hosts up; `testbed down` removes them")
    parser.add_argument("--plan", action="store_true", help="say what would run, and make nothing but caches")
    parser.add_argument("--store", metavar="URI", help="the result store (default: under the XDG data folder)")
    parser.add_argument("--out", metavar="DIR", help="ducktape's results and output go here; new or empty")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.epilog = "exit codes: 0 every test passed, 1 one failed or was not done, 2 one cannot run here"


def _run(args: argparse.Namespace) -> int:
    from testbed.cli.kafkatests import as_json, as_text, plan_as_text
    from testbed.cli.output import TimedProgress
    from testbed.kafkatest.run import KafkatestRequest, planned, run_kafkatest
    from testbed.kafkatest.selection import ducktape_options

    options = ducktape_options(
        parameters=args.parameters,
        exclude=args.exclude,
        globals_=args.globals,
        repeat=args.repeat,
        max_parallel=args.max_parallel,
    )
    request = KafkatestRequest(
        args.checkout,
        args.tests,
        args.kafka,
        args.hosts,
        args.nic,
        args.out,
        args.store,
        args.keep,
        args.name,
        args.python,
        args.jvm,
        options,
    )
    if args.plan:
        print(plan_as_text(planned(request, TimedProgress())))
        return 0
    result = run_kafkatest(request, TimedProgress())
    print(as_json(result) if args.json else as_text(result))
    return result.exit_code


COMMAND = Command("kafkatest", "run Apache Kafka's own system tests, unmodified, on shaped NICs", _configure, _run)
