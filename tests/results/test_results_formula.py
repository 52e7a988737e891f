"""The article's picture: seconds as bars, the formula as a mark beside each."""

import pytest

from results.compare import values_of
from results.criteria import judge
from results.report.formula import formula_picture
from results.report.sweep import Combination, SweepPage, render_sweep
from tests.results.relocated import PAYLOAD, TIERED, Told, relocated


def combination(label, seconds, formula, low=None, high=None):
    ranges = {"move-seconds": (low or seconds, high or seconds), "formula-seconds": (formula, formula)}
    return Combination(label, (label,), {"pass": 1}, {"move-seconds": seconds, "formula-seconds": formula}, ranges)


def test_bars_are_as_long_as_the_seconds_and_marks_as_the_formula():
    picture = formula_picture([combination("disk", 20.0, 16.0, 18.0, 24.0), combination("tiered", 2.0, 16.0)])
    disk, tiered = picture.lines
    assert disk.high == max(line.high for line in picture.lines)
    assert (disk.width, disk.formula) == pytest.approx((disk.high * 20 / 24, disk.high * 16 / 24), rel=1e-3)
    assert tiered.width == pytest.approx(disk.width / 10, rel=1e-2)
    assert tiered.text == "2.0 s, formula 16.0 s"
    assert tiered.y > disk.y


def test_what_has_no_formula_has_no_picture():
    assert formula_picture([Combination("a", (), {}, {"move-seconds": 1.0}, {"move-seconds": (1.0, 1.0)})]) is None


def test_it_is_on_the_page_of_a_comparison_and_nothing_of_a_quota_is():
    found = (combination("storage=disk", 20.0, 16.0), combination("storage=tiered", 2.0, 16.0))
    names = ("move-seconds", "formula-seconds")
    page = render_sweep(
        SweepPage("id", "s3-reassign", "ci", ("storage",), found, names, dict.fromkeys(names, "s"), "", True, (), "x")
    )
    assert "Seconds of the move, beside log size ÷ NIC" in page
    assert "Observed ÷ quota" not in page


def test_the_measures_that_are_compared():
    manifest, samples, events = relocated(told=TIERED)
    found = values_of(manifest, judge(manifest, samples, events).measures)
    assert found["formula-seconds"] == pytest.approx(300e6 / PAYLOAD)
    assert found["of-formula"] == pytest.approx(TIERED.seconds / (300e6 / PAYLOAD))
    assert found["between-brokers"] == pytest.approx(TIERED.copied / 1e6, rel=0.01)
    assert found["longest-ack"] == 900.0
    assert found["store-requests"] >= 20
    unknown = values_of(*_judged(Told(counted=False, done=False)))
    assert not {"store-requests", "of-formula"} & set(unknown)


def _judged(told):
    manifest, samples, events = relocated(told=told)
    return manifest, judge(manifest, samples, events).measures
