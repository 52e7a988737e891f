"""Predictions beside what happened."""

from dataclasses import replace

import pytest

from results.criteria.model import estimate, worst
from tests.results.moves import simulate
from tests.results.scenes import one_to_two, two_node


def test_a_prediction_is_compared_with_what_happened_and_so_is_kip73s():
    run = simulate(two_node(3e6, 360e6))
    found = estimate("produce", run.manifest.move, run.judged().measures)
    assert found.predicted_s == pytest.approx(360e6 / 7e6)
    assert found.error == pytest.approx(found.predicted_s / found.observed_s - 1)
    assert -0.05 < found.error < 0
    # With one replica the formula has all there is.
    assert found.kip73_s / found.observed_s - 1 == pytest.approx(found.error)
    sender = simulate(one_to_two(2e6))
    other = estimate("one-to-two", sender.manifest.move, sender.judged().measures)
    assert abs(other.kip73_s / other.observed_s - 1) > 5 * abs(other.error)
    assert worst([found, other]).name in ("produce", "one-to-two")


@pytest.mark.parametrize(
    ("move", "measures", "error", "why"),
    [
        ({"model_seconds": None, "model_why": "restarts"}, {}, None, "restarts"),
        ({"model_seconds": None}, {}, None, "the run has no model"),
        ({"kip73_seconds": 0.0}, {}, -0.02, ""),
        ({"model_seconds": float("inf")}, {}, None, "the run has no model"),
        ({}, {"done_s": None}, None, ""),
        ({}, {"moved_s": None}, None, ""),
    ],
)
def test_what_is_not_known_is_not_compared(move, measures, error, why):
    run = simulate(two_node())
    found = estimate("x", replace(run.manifest.move, **move), replace(run.judged().measures, **measures))
    assert found.error == (None if error is None else pytest.approx(error, abs=0.01))
    assert (found.kip73_s is None) == ("kip73_seconds" in move)
    assert found.why == why
    assert worst([found]) == (found if error is not None else None)
