"""Run the scenarios of a suite through ducktape."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from results.render import document, table
from testbed.cli.options import add_earlier, add_kafka, add_repeatable
from testbed.cli.output import require_writable, timed_progress

if TYPE_CHECKING:
    from testbed.runner.suite import SuiteResult


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", nargs="?", metavar="SUITE", help="the suite (default: list the suites and scenarios)")
    parser.add_argument("--profile", metavar="PROFILE", default="ci", help="smoke, ci or release (default: ci)")
    add_repeatable(parser, "--scenario", "NAME", "only this scenario; repeatable")
    add_earlier(parser, "--only", "scenario", action="append")
    add_kafka(parser, "the topologies'")
    parser.add_argument("--store", metavar="URI", help="the result store (default: under the XDG data folder)")
    parser.add_argument("--out", metavar="DIR", help="a new or empty folder for report, JUnit file and evidence")
    parser.add_argument(
        "--retry-noisy",
        metavar="N",
        type=int,
        default=0,
        help="repeats of a scenario that only the machine made inconclusive (default: 0)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.epilog = (
        "Example: `testbed suite kip73 --profile smoke`.\n"
        "Exit codes: 0 every scenario passed, 1 one failed or was not done, 2 one was inconclusive."
    )


def run(args: argparse.Namespace) -> int:
    from testbed.runner.case import EXIT
    from testbed.runner.suite import SuiteRequest, run_suite

    if args.suite is None:
        print(suites_table())
        return 0
    require_writable(args.out and Path(args.out) / "index.html")
    request = SuiteRequest(
        args.suite, args.profile, tuple(args.scenario), args.kafka, args.store, args.out, args.retry_noisy
    )
    finished = run_suite(request, timed_progress())
    print(as_json(finished) if args.json else as_text(finished))
    return EXIT[finished.ending]


def as_text(finished: "SuiteResult") -> str:
    """Return a line per scenario, the reason where it did not pass, the verdict, and the report's path."""
    rows = [
        (outcome.ending.upper(), outcome.case, outcome.topology, f"{outcome.seconds:.0f} s", outcome.run_id or "")
        for outcome in finished.outcomes
    ]
    lines = [table(("VERDICT", "SCENARIO", "TOPOLOGY", "TIME", "RUN"), rows), ""]
    for outcome in finished.outcomes:
        lines += [f"{outcome.case} was run again, as only the machine disturbed {run}" for run in outcome.disturbed]
        if outcome.ending != "pass":
            lines.append(f"{outcome.case}: {outcome.why}")
            if outcome.evidence:
                lines.append(f"  evidence {outcome.evidence}")
    lines += [f"{name}: not run: {why}" for name, why in finished.not_run.items()]
    lines += [f"problem: {problem}" for problem in finished.problems]
    verdict = "fail" if finished.ending == "not done" else finished.ending
    lines += [
        f"{verdict.upper()}  {finished.suite} {finished.profile}  {finished.seconds:.0f} s",
        f"report {finished.report}",
        f"JUnit {finished.junit}",
    ]
    return "\n".join(lines)


def as_json(finished: "SuiteResult") -> str:
    """Return one JSON document: suite, verdict, cases, problems, report, JUnit file, store."""
    return document(
        {
            "suite": finished.suite,
            "profile": finished.profile,
            "verdict": "fail" if finished.ending == "not done" else finished.ending,
            "seconds": finished.seconds,
            "cases": [{**asdict(outcome), "ending": outcome.ending} for outcome in finished.outcomes],
            "not_run": finished.not_run,
            "problems": finished.problems,
            "report": finished.report,
            "junit": finished.junit,
            "store": finished.store,
        }
    )


def suites_table() -> str:
    """Return a line per suite and profile: the number of scenarios, and their names."""
    from testbed.suites.suite import suites

    rows = [
        (suite.name, profile, len(cases), ", ".join(case.name for case in cases))
        for suite in suites().values()
        for profile, cases in suite.profiles.items()
    ]
    return table(("SUITE", "PROFILE", "SCENARIOS", ""), rows)
