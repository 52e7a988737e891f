"""Words and criteria for what was not observed."""

from results.contract.verdict import Finding
from results.criteria.frame import criterion
from results.criteria.measures import GAP_S, MoveMeasures


def gap_words(longest_gap_s: float | None) -> str | None:
    """What is said of a gap that is too long; None when there is none."""
    if longest_gap_s is None:
        return "no samples"
    return f"no sample for {longest_gap_s:.1f} s" if longest_gap_s > GAP_S else None


def unseen(name: str, expected: str, measures: MoveMeasures, series: tuple[str, ...]) -> Finding:
    """What stands in the place of a criterion for which no host was found at all."""
    missing = "no move.started was recorded" if measures.started_us is None else "the manifest lists no such flow"
    return criterion(name, expected, "inconclusive", missing, observed=None, series=series)
