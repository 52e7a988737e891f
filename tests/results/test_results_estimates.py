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
    assert found.kip73_error == pytest.approx(found.error)  # with one replica the formula has all there is
    sender = simulate(one_to_two(2e6))
    other = estimate("one-to-two", sender.manifest.move, sender.judged().measures)
    assert abs(other.kip73_error) > 5 * abs(other.error)
    assert worst([found, other]).name in ("produce", "one-to-two")


@pytest.mark.parametrize(
    ("move", "measures", "error", "kip73_error", "why"),
    [
        ({"model_seconds": None, "model_why": "restarts"}, {}, None, -0.02, "restarts"),
        ({"model_seconds": None}, {}, None, -0.02, "the run has no model"),
        ({"kip73_seconds": 0.0}, {}, -0.02, None, ""),
        ({"model_seconds": float("inf")}, {}, None, -0.02, "the run has no model"),
        ({}, {"done_s": None}, None, None, ""),
        ({}, {"moved_s": None}, None, None, ""),
    ],
)
def test_what_is_not_known_is_not_compared(move, measures, error, kip73_error, why):
    run = simulate(two_node())
    found = estimate("x", replace(run.manifest.move, **move), replace(run.judged().measures, **measures))
    for value, wanted in ((found.error, error), (found.kip73_error, kip73_error)):
        assert (value is None) == (wanted is None)
        assert wanted is None or value == pytest.approx(wanted, abs=0.01)
    assert found.why == why
    assert worst([found]) == (found if error is not None else None)
