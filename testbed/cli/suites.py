"""The result of a suite, for users and for programs."""

from dataclasses import asdict

from results.render import document, table
from testbed.runner.suite import SuiteResult
from testbed.suites.suite import suites


def as_text(finished: SuiteResult) -> str:
    """Return a line per case, the reason where it did not pass, the verdict, and the report's path."""
    rows = [
        (outcome.ending.upper(), outcome.case, outcome.topology, f"{outcome.seconds:.0f} s", outcome.run_id or "")
        for outcome in finished.outcomes
    ]
    lines = [table(("VERDICT", "CASE", "TOPOLOGY", "TIME", "RUN"), rows), ""]
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


def as_json(finished: SuiteResult) -> str:
    """Return one JSON document: suite, verdict, cases, problems, report, JUnit file, store."""
    return document(
        {
            "suite": finished.suite,
            "profile": finished.profile,
            "verdict": "fail" if finished.ending == "not done" else finished.ending,
            "seconds": finished.seconds,
            "cases": [{**asdict(outcome), "ending": outcome.ending} for outcome in finished.outcomes],
            "not_run": dict(finished.not_run),
            "problems": list(finished.problems),
            "report": str(finished.report),
            "junit": str(finished.junit),
            "store": finished.store,
        }
    )


def suites_table() -> str:
    """Return a line per suite and profile: the number of cases, and their names."""
    rows = [
        (suite.name, profile, len(cases), ", ".join(case.name for case in cases))
        for suite in suites().values()
        for profile, cases in suite.profiles.items()
    ]
    return table(("SUITE", "PROFILE", "CASES", ""), rows)
