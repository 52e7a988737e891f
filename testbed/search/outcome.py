"""The outcome of one try of an incident: what each invariant said. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from results.contract.verdict import Finding
from results.criteria.expectations import EXPECTATIONS
from testbed.search.draft import JUDGED

NAMES: Mapping[str, str] = {EXPECTATIONS[key].name(): key for key in JUDGED}
"""Criterion → key of the expectations by which a search judges."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a try found: the invariants (criteria) that failed and why, those that could not be judged and why.

    `pairs` are the pairs of a fault or action and a phase that it showed. `refused` are kinds of fault that did not
    take effect. `void` says why the replay as a whole could not be judged; then nothing failed.
    """

    seconds: float
    failed: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    refused: tuple[str, ...] = ()
    void: str = ""
    run_id: str = ""

    @property
    def judged(self) -> bool:
        """Return whether an invariant was judged."""
        return bool(self.failed or self.kept)


def judged(findings: Sequence[Finding]) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Return which invariants failed and which could not be judged, each with why, and which held.

    What could not be measured is never a failure.
    """
    by_verdict: dict[str, dict[str, str]] = {"fail": {}, "inconclusive": {}, "pass": {}}
    for each in findings:
        if each.name in NAMES:
            by_verdict[each.verdict].setdefault(each.name, each.why)
    failed = by_verdict["fail"]
    unknown = {name: why for name, why in by_verdict["inconclusive"].items() if name not in failed}
    kept = tuple(name for name in by_verdict["pass"] if name not in failed and name not in unknown)
    return failed, unknown, kept
