"""Was it the machine alone that a run could not be judged by? Then it says nothing of Kafka, and may be made again."""

from results.criteria.registry import Judgement

GROUND = ("nic-measured", "machine-load")
"""The criteria that are about the machine and not about Kafka."""


def disturbed(judgement: Judgement) -> bool:
    """Whether a run is inconclusive by the machine alone: what else was not judged was not judged because of it."""
    causes = {c.name for c in judgement.criteria if c.verdict == "inconclusive" and not c.why.startswith("not judged")}
    return judgement.verdict == "inconclusive" and bool(causes) and causes <= set(GROUND)
