"""Run Apache Kafka's own system tests, unmodified, on shaped NICs."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from results.render import document, table
from testbed.cli.options import add_earlier, add_repeatable
from testbed.cli.output import require_writable, timed_progress

if TYPE_CHECKING:
    from testbed.kafkatest.run import KafkatestResult, PlannedTests, TestOutcome
    from testbed.kafkatest.selection import SystemTest


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkout", metavar="CHECKOUT", help="a checkout of Apache Kafka's sources")
    parser.add_argument(
        "tests", nargs="*", metavar="TEST", help="a file or folder, or FILE::CLASS.METHOD (default: every test)"
    )
    parser.add_argument(
        "--kafka",
        metavar="VERSION",
        help="the build under test: a release, a tarball or a build's path (default: the checkout's)",
    )
    parser.add_argument(
        "--host-count", metavar="N", type=int, help="number of hosts (default: as many as a test needs)"
    )
    add_earlier(parser, "--hosts", "host_count", int)
    parser.add_argument(
        "--nic", metavar="RATE", default="1gbit", help="rate of each host's NIC in both directions (default: 1gbit)"
    )
    parser.add_argument("--parameters", metavar="JSON", help="only tests with these arguments, as for ducktape")
    add_repeatable(parser, "--exclude", "TEST", "leave this test out; repeatable")
    parser.add_argument("--globals", metavar="JSON", help="ducktape's globals, which the tests read")
    parser.add_argument("--repeats", metavar="N", type=int, help="run each test N times")
    add_earlier(parser, "--repeat", "repeats", int)
    parser.add_argument("--max-parallel", metavar="N", type=int, default=1, help="tests at the same time (default: 1)")
    parser.add_argument("--python", metavar="PATH", help="the Python for the tests' own environment")
    parser.add_argument(
        "--jvm",
        choices=["light", "kafka"],
        default="light",
        help="flags of Kafka's JVMs: light for few cores, or kafka, the scripts' own (default: light)",
    )
    parser.add_argument("--name", metavar="NAME", help="the testbed's name (default: a new one)")
    parser.add_argument(
        "--keep", action="store_true", help="leave the hosts up at the end; `testbed down` removes them"
    )
    parser.add_argument("--plan", action="store_true", help="print what would run; make nothing but caches")
    parser.add_argument("--store", metavar="URI", help="the result store (default: under the XDG data folder)")
    parser.add_argument("--out", metavar="DIR", help="a new or empty folder for ducktape's results and output")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.epilog = (
        "Example: `testbed kafkatest ~/kafka throttling_test --nic 400mbit`.\n"
        "Exit codes: 0 every test passed, 1 one failed or was not done, 2 one cannot run here."
    )


def run(args: argparse.Namespace) -> int:
    from testbed.kafkatest.run import KafkatestRequest, planned, run_kafkatest
    from testbed.kafkatest.selection import ducktape_options

    require_writable(args.out and Path(args.out) / "ducktape.log")
    options = ducktape_options(
        parameters=args.parameters,
        globals_=args.globals,
        repeat=args.repeats,
        max_parallel=args.max_parallel,
    )
    request = KafkatestRequest(
        args.checkout,
        args.tests,
        args.kafka,
        args.host_count,
        args.nic,
        args.out,
        args.store,
        args.keep,
        args.name,
        args.python,
        args.jvm,
        args.exclude,
        options,
    )
    if args.plan:
        plan = planned(request, timed_progress())
        print(plan_as_json(plan) if args.json else plan_as_text(plan))
        return 0
    result = run_kafkatest(request, timed_progress())
    print(as_json(result) if args.json else as_text(result))
    return result.exit_code


MOST_LINES = 12
"""Lines of a failure's reason on a terminal; the folder has all of it."""


def arguments_text(test: "SystemTest") -> str:
    """Return a test's arguments as `name=value`, in order."""
    from testbed.kafkatest.selection import argument_text

    return " ".join(f"{name}={argument_text(value)}" for name, value in sorted(test.arguments.items()))


def plan_as_text(plan: "PlannedTests") -> str:
    """Return the Kafkas of the hosts, then a line for each test: its hosts, and why it cannot run here."""
    rows = [(test.name, arguments_text(test), str(test.nodes), plan.obstacles.get(test.id, "")) for test in plan.tests]
    return "\n".join(
        [
            f"checkout {plan.checkout.folder}: {plan.checkout.version}; {plan.python.python}",
            *(f"{home.folder}: Kafka {home.version}, scripts of {home.scripts_of}" for home in plan.homes),
            f"{plan.hosts} hosts; {len(plan.runnable)} of {len(plan.tests)} tests can run here",
            "",
            table(("TEST", "ARGUMENTS", "HOSTS", "CANNOT RUN"), rows),
        ]
    )


def plan_as_json(plan: "PlannedTests") -> str:
    """Return one JSON document: the Kafkas, the environment, and each test with why it cannot run here."""
    tests = [
        {"test": each.name, "arguments": each.arguments, "hosts": each.nodes, "cannot_run": plan.obstacles.get(each.id)}
        for each in plan.tests
    ]
    return document({**_plan(plan), "tests": tests})


def _plan(plan: "PlannedTests") -> dict[str, Any]:
    return {
        "checkout": plan.checkout.folder,
        "version": plan.checkout.version,
        "kafka": {home.name: home.version for home in plan.homes},
        "python": plan.python.python,
        "packages": plan.python.installed,
        "hosts": plan.hosts,
    }


def as_text(result: "KafkatestResult") -> str:
    """Return a line for each test, the reason where it did not pass, the counts, and where everything is."""
    rows = [
        (each.status.upper(), each.test.name, arguments_text(each.test), f"{each.seconds:.0f} s", each.run_id or "")
        for each in result.outcomes
    ]
    lines = [table(("RESULT", "TEST", "ARGUMENTS", "TIME", "RUN"), rows), ""]
    for each in result.outcomes:
        if each.status != "pass":
            lines += [f"{each.test.name} {arguments_text(each.test)}".rstrip(), *_reason(each)]
    kinds = ("pass", "fail", "not done", "not run")
    counts = {kind: sum(each.status == kind for each in result.outcomes) for kind in kinds}
    lines += [
        ", ".join(f"{count} {kind}" for kind, count in counts.items() if count),
        f"everything is in {result.folder}",
    ]
    if result.kept:
        lines.append(f"the hosts stay: testbed exec {result.kept} HOST -- COMMAND, testbed down {result.kept}")
    return "\n".join(lines)


def as_json(result: "KafkatestResult") -> str:
    """Return one JSON document: the Kafkas, the environment, every test, folder and store."""
    return document(
        {
            **_plan(result.plan),
            "tests": [_outcome(each) for each in result.outcomes],
            "folder": result.folder,
            "store": result.store,
            "testbed": result.kept,
        }
    )


def _outcome(each: "TestOutcome") -> Mapping[str, Any]:
    return {
        "test": each.test.name,
        "arguments": each.test.arguments,
        "hosts": each.test.nodes,
        "result": each.status,
        "why": each.why,
        "seconds": each.seconds,
        "run_id": each.run_id,
        "folder": each.folder,
    }


def _reason(each: "TestOutcome") -> list[str]:
    found = each.why.splitlines() or ["no reason was given"]
    more = [f"… {len(found) - MOST_LINES} more lines"] if len(found) > MOST_LINES else []
    where = [f"evidence {each.folder}"] if each.folder else []
    return [f"  {line}" for line in [*found[:MOST_LINES], *more, *where]]
