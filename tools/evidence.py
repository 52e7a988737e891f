"""The table criterion → defect, fault or interference → run: that every criterion was seen to fail on real brokers.

./run exec python -m tools.evidence [STORE …]

Stores are those of `testbed selftest`: each of their runs that has a defect gives a row for every criterion that it
failed. `tests/containers/test_demonstrations.py` adds the rows of its own runs. Both are kept in
`docs/measurements/criteria.json`, from which the page next to it is written.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from results.contract.store import Store
from results.contract.verdict import Finding, Verdict
from results.criteria.catalogue.scenario_steps import CRITERION as STEPS
from results.criteria.criterion import PRECONDITIONS
from results.criteria.judgement import catalogue
from testbed.defects.parse import find_defect

FOLDER = Path(__file__).parent.parent / "docs" / "measurements"
ROWS = FOLDER / "criteria.json"
MOST_OF_ONE = 3
"""Rows that the table keeps of one criterion."""
_SHOWN = 160
"""Characters of a finding's reason that the table shows."""


@dataclass(frozen=True, slots=True, order=True)
class Demonstration:
    """A run in which a criterion did not hold, and why it did not."""

    criterion: str
    cause: str
    """The defect as text, or what was done to the run from outside, or to its driver."""
    verdict: Verdict
    observed: str
    run_id: str
    kafka: str


def criterion_of(found: Finding) -> str:
    """Return the name of the criterion that made a finding: criteria that judge several facts name each of them."""
    if found.name in catalogue():
        return found.name
    several = [name for name in catalogue() if found.name.startswith((f"{name}-", f"{name}."))]
    return several[0] if several else STEPS.name


def rows_of(
    findings: Iterable[Finding], cause: str, run_id: str, kafka: str, verdict: Verdict = "fail"
) -> list[Demonstration]:
    """Return a row for every criterion that has this verdict in a run."""
    found: dict[str, Demonstration] = {}
    for each in findings:
        if each.verdict == verdict:
            name, why = criterion_of(each), each.why[:_SHOWN]
            found.setdefault(name, Demonstration(name, cause, verdict, why, run_id, kafka))
    return list(found.values())


def of_store(store: Store) -> list[Demonstration]:
    """Return the rows of all runs of a store whose brokers were broken on purpose, and acted."""
    found: list[Demonstration] = []
    for run_id in store.runs():
        manifest = store.manifest(run_id)
        if any(each.acted for each in manifest.defects):
            cause = " + ".join(sorted({f"{each.name}:{each.parameters}".rstrip(":") for each in manifest.defects}))
            kafka = ", ".join(sorted(set(manifest.versions.kafka.values())))
            found += rows_of(store.criteria(run_id), f"defect `{cause}`", run_id, kafka)
            expected = {name for each in manifest.defects for name in find_defect(each.name).found_by}
            never_fails = {name for name in expected & catalogue().keys() if catalogue()[name].section == PRECONDITIONS}
            opened = rows_of(store.criteria(run_id), f"defect `{cause}`", run_id, kafka, "inconclusive")
            found += [row for row in opened if row.criterion in never_fails]
    return found


def load(path: Path = ROWS) -> list[Demonstration]:
    """Return the recorded rows; none without the file."""
    return [Demonstration(**row) for row in json.loads(path.read_text())] if path.exists() else []


def add(rows: Iterable[Demonstration], path: Path = ROWS) -> None:
    """Add rows, write the file and, next to it, the page. A later run of the same cause replaces an earlier one."""
    by_cause = {(each.criterion, each.cause): each for each in (*load(path), *rows)}
    kept: list[Demonstration] = []
    for name in sorted({criterion for criterion, _cause in by_cause}):
        mine = [each for each in by_cause.values() if each.criterion == name]
        kept += sorted(mine, key=lambda each: each.run_id, reverse=True)[:MOST_OF_ONE]
    path.write_text(json.dumps([asdict(each) for each in sorted(kept)], indent=1) + "\n")
    path.with_suffix(".md").write_text(page(kept))


def page(rows: Sequence[Demonstration]) -> str:
    """Return the page as Markdown. Pure."""
    lines = [
        "# Criteria that were seen to fail",
        "",
        "Each row is a run on real brokers in which a criterion did not hold, for the reason that it exists for.",
        "A precondition cannot fail: it is *inconclusive*. `python -m tools.evidence` and",
        "`tests/containers/test_demonstrations.py` write this page; do not edit it.",
        "",
        "| criterion | cause | verdict | what it said | run | Kafka |",
        "|---|---|---|---|---|---|",
    ]
    for each in sorted(rows):
        said = " ".join(each.observed.split()).replace("|", "\\|")  # a line break would end the row
        lines.append(f"| `{each.criterion}` | {each.cause} | {each.verdict} | {said} | {each.run_id} | {each.kafka} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Add the runs of self-tests to the table."""
    parser = argparse.ArgumentParser(description="write the table of criteria that were seen to fail")
    parser.add_argument("stores", nargs="*", help="stores of `testbed selftest`")
    add([row for location in parser.parse_args().stores for row in of_store(Store.open(location))])


if __name__ == "__main__":
    main()
