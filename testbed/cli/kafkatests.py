"""The result of a session of system tests, for users and for programs."""

from collections.abc import Mapping
from typing import Any

from results.render import document, table
from testbed.kafkatest.run import KafkatestResult, PlannedTests, TestOutcome
from testbed.kafkatest.selection import SystemTest, argument_text

MOST_LINES = 12
"""Lines of a failure's reason on a terminal; the folder has all of it."""


def arguments_text(test: SystemTest) -> str:
    """Return a test's arguments as `name=value`, in order."""
    return " ".join(f"{name}={argument_text(value)}" for name, value in sorted(test.arguments.items()))


def plan_as_text(plan: PlannedTests) -> str:
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


def as_text(result: KafkatestResult) -> str:
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
        lines.append(f"the hosts stay: testbed exec {result.kept} HOST COMMAND, testbed down {result.kept}")
    return "\n".join(lines)


def as_json(result: KafkatestResult) -> str:
    """Return one JSON document: the Kafkas, the environment, every test, folder and store."""
    plan = result.plan
    return document(
        {
            "checkout": str(plan.checkout.folder),
            "version": plan.checkout.version,
            "kafka": {home.name: home.version for home in plan.homes},
            "python": plan.python.python,
            "packages": list(plan.python.installed),
            "hosts": plan.hosts,
            "tests": [_outcome(each) for each in result.outcomes],
            "folder": str(result.folder),
            "store": result.store,
            "testbed": result.kept,
        }
    )


def _outcome(each: TestOutcome) -> Mapping[str, Any]:
    return {
        "test": each.test.name,
        "arguments": dict(each.test.arguments),
        "hosts": each.test.nodes,
        "result": each.status,
        "why": each.why,
        "seconds": each.seconds,
        "run_id": each.run_id,
        "folder": each.folder,
    }


def _reason(each: TestOutcome) -> list[str]:
    found = each.why.splitlines() or ["no reason was given"]
    more = [f"… {len(found) - MOST_LINES} more lines"] if len(found) > MOST_LINES else []
    where = [f"evidence {each.folder}"] if each.folder else []
    return [f"  {line}" for line in [*found[:MOST_LINES], *more, *where]]
