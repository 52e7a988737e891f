"""How well moves were predicted: by the model of all listed traffic, and by KIP-73's own formula. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from results.contract.manifest import Move
from results.criteria.measures import MoveMeasures


@dataclass(frozen=True, slots=True)
class Estimate:
    """One move. Times are seconds; errors are predicted ÷ observed − 1. None is *no such prediction*, or not observed.

    `why` says why there is no prediction.
    """

    name: str
    predicted_s: float | None
    observed_s: float | None
    kip73_s: float | None
    error: float | None
    kip73_error: float | None
    why: str = ""


def estimate(name: str, move: Move, measures: MoveMeasures) -> Estimate:
    """A move's predictions beside how long it took. One that was not seen to be done has no errors."""
    observed_s = measures.moved_s if measures.done_s is not None else None
    kip73_s = _known(move.kip73_seconds)
    predicted_s = _known(move.model_seconds)
    why = "" if predicted_s is not None else move.model_why or "the run has no model"
    return Estimate(
        name, predicted_s, observed_s, kip73_s, _error(predicted_s, observed_s), _error(kip73_s, observed_s), why
    )


def worst(estimates: Iterable[Estimate]) -> Estimate | None:
    """The one that the model was furthest from; None when there is none that can be compared."""
    known = [(abs(e.error), e) for e in estimates if e.error is not None]
    return max(known, key=lambda found: found[0])[1] if known else None


def _known(seconds: float | None) -> float | None:
    return seconds if seconds is not None and math.isfinite(seconds) and seconds > 0 else None


def _error(predicted_s: float | None, observed_s: float | None) -> float | None:
    return None if predicted_s is None or not observed_s else predicted_s / observed_s - 1
