"""The clocks of several machines: measured, bounded, or the rates of a run are not judged."""

from dataclasses import replace

import pytest

from results.contract.clocks import ClockReading
from results.contract.manifest import Manifest
from results.criteria.catalogue.clocks_agree import BOUND_S, judge_agreement

NEAR = ClockReading("m2", "before", 0.001, 0.0005)


def test_clocks_that_agree_pass_and_the_largest_offset_is_told():
    [found] = judge_agreement([NEAR, ClockReading("m2", "after", -0.012, 0.001)])
    assert (found.verdict, found.observed) == ("pass", pytest.approx(0.013))
    assert "2 readings of 1 other machine; the largest offset is -12.0 ± 1.0 ms, of m2 after the run" in found.why


@pytest.mark.parametrize(
    ("reading", "told"),
    [
        (ClockReading("m2", "after", 0.2, 0.001), "after the run the clock of machine m2 was +200.0 ± 1.0 ms"),
        (ClockReading("m2", "after", 0.0, BOUND_S * 1.01), "was +0.0 ± 50.5 ms from this machine's"),
        (ClockReading("m2", "after", None, 0.0, "no SSH"), "the clock of machine m2 was not measured: no SSH"),
    ],
)
def test_an_offset_beyond_a_reading_or_an_unknown_one_is_inconclusive(reading, told):
    [found] = judge_agreement([NEAR, reading])
    assert found.verdict == "inconclusive"
    assert told in found.why


def test_rates_of_a_run_are_not_judged_and_facts_are(make_run):
    run = make_run()
    names = {c.name for c in run.judged().criteria}
    assert "clocks-agree" not in names
    far = replace(run, manifest=replace(run.manifest, clocks=(ClockReading("m2", "before", 1.0, 0.001),)))
    judged = {(c.name): c for c in far.judged().criteria}
    assert judged["clocks-agree"].verdict == "inconclusive"
    assert judged["steady-mean"].verdict == "inconclusive"
    assert judged["records-intact"].verdict == "pass"
    manifest = far.manifest
    assert Manifest.from_json(manifest.to_json()).clocks == manifest.clocks
