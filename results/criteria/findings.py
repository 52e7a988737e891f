"""Constructors of findings, also for a gap in the samples or a precondition that does not hold."""

import math
from collections.abc import Sequence
from dataclasses import replace

from results.contract.manifest import Differences
from results.contract.texts import and_more, shortened
from results.contract.verdict import Direction, Finding, Power, Verdict
from results.criteria.measures import MoveMeasures
from results.criteria.quantities import GAP_S

_SHOWN = 5
SENT_AGAIN = "the client sent them again under a new producer epoch, so the brokers could not know that they have them"


def finding(
    name: str,
    expected: object,
    verdict: Verdict,
    why: str,
    *,
    observed: float | str | None,
    series: tuple[str, ...],
    unit: str = "",
    tolerance: str = "none",
    host: str | None = None,
    direction: Direction | None = None,
    power: Power | None = None,
) -> Finding:
    """Return a finding, exact and without a unit unless given. Only a pass has a power."""
    power = power if verdict == "pass" else None
    return Finding(name, host, direction, str(expected), observed, unit, tolerance, verdict, why, series, power)


def times_power(factor: float | None, words: str) -> Power | None:
    """Return what would have failed from a factor on, such as *times the bytes*; None when no factor would have."""
    if factor is None or not math.isfinite(factor) or factor <= 0:
        return None
    return Power(factor, "×", f"would have failed from {factor:.3f} × {words} on")


def not_judged(found: Finding, shaky: Sequence[Finding]) -> Finding:
    """Return the finding left open, because preconditions (one at least) do not hold."""
    why = "; ".join([f"not judged: {shaky[0].label}: {shaky[0].why}", *and_more(len(shaky) - 1)])
    return replace(found, verdict="inconclusive", why=why, power=None)


def gap_text(longest_gap_s: float | None) -> str | None:
    """Return what is said of a gap that is too long; None when there is none."""
    if longest_gap_s is None:
        return "no samples"
    return f"no sample for {longest_gap_s:.1f} s" if longest_gap_s > GAP_S else None


def missing_data(name: str, expected: str, measures: MoveMeasures, series: tuple[str, ...]) -> Finding:
    """Return what stands in the place of a criterion for which no host was found at all."""
    missing = "no move.started was recorded" if measures.started_us is None else "the manifest lists no such flow"
    return finding(name, expected, "inconclusive", missing, observed=None, series=series)


def difference_finding(name: str, expected: str, found: Differences | None, field: str) -> Finding:
    """Return the finding of a state that the run compared with what it should be; None: it did not."""
    if found is None:
        return fact_finding(name, expected, None, "", field)
    ok = found.ok and not found.differences
    shown = "; ".join(found.differences[:5]) or "differences were found, but not which"
    return fact_finding(name, expected, ok, "no difference" if ok else shown, field)


def answers_finding(
    name: str, expected: str, asked: str, wrong: Sequence[str], problem: str, *, unit: str, field: str
) -> Finding:
    """Return the finding of answers of which some are `wrong`; with a `problem` and none wrong it is inconclusive."""
    verdict: Verdict = "fail" if wrong else "inconclusive" if problem else "pass"
    said = "; ".join(shortened(wrong, _SHOWN)) or problem
    why = f"{asked}: {said}" if said else asked
    observed = None if verdict == "inconclusive" else float(len(wrong))
    return finding(name, expected, verdict, why, observed=observed, unit=unit, series=(field,))


def fact_finding(name: str, expected: str, ok: bool | None, why: str, field: str) -> Finding:
    """Return the finding of a fact of the manifest; None for `ok`: the run did not establish it."""
    words = {True: "yes", False: "no", None: None}
    verdicts: dict[bool | None, Verdict] = {True: "pass", False: "fail", None: "inconclusive"}
    return finding(
        name,
        expected,
        verdicts[ok],
        why or "the run did not establish it",
        observed=words[ok],
        series=(f"manifest.facts.{field}",),
    )
