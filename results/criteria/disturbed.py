"""Why a run could not be judged: by the machine alone, or only what would explain it says nothing."""

from collections.abc import Sequence

from results.criteria.registry import Judgement

GROUND = ("nic-measured", "machine-load")
"""The criteria that are about the machine and not about Kafka."""


EXPLAINING = ("duration-formula",)
"""The criteria that say what a move's time is made of. Where one says nothing, what was measured stands: a broker that
is slower than its NIC is the very thing somebody looks for."""


def disturbed(judgement: Judgement) -> bool:
    """Whether a run is inconclusive by the machine alone: what else was not judged was not judged because of it."""
    return _only(judgement, GROUND)


def sound(judgement: Judgement) -> bool:
    """Whether a run that is inconclusive was measured all the same: only what would explain it says nothing."""
    return _only(judgement, EXPLAINING)


def _only(judgement: Judgement, names: Sequence[str]) -> bool:
    causes = {c.name for c in judgement.criteria if c.verdict == "inconclusive" and not c.why.startswith("not judged")}
    return judgement.verdict == "inconclusive" and bool(causes) and causes <= set(names)
