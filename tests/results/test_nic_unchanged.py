"""A network that changed during a run leaves its rates open, by name; one that did not leaves no doubt."""

from dataclasses import replace

import pytest

from results.contract.manifest import Done, Manifest
from results.contract.network import LinkDifference, NetworkRecord, NicMeasurement, ShapingReading
from results.criteria import judge
from results.criteria.judgement import noisy, rates_failed
from tests.results.judged import verdicts
from tests.results.synthetic import LINE_BPS

SLOW = LinkDifference("b2", "data0", "receive", "rate is 60mbit; declared is 400mbit")
RATES = ("steady-mean", "duration-model", "nic-conservation", "broker-rate-agrees")


def reading(when, *differences, second=0):
    return ShapingReading(f"2026-11-21T18:15:{second:02}.000+00:00", when, differences)


def after(*readings):
    return NicMeasurement("b2", "data0", "receive", LINE_BPS, 45e6 * readings[-1], readings[-1], 2.0, readings)


def judged(run, *readings, again=()):
    manifest = replace(run.manifest, network=NetworkRecord(readings, again))
    assert Manifest.from_json(manifest.to_json()) == manifest
    return judge(manifest, run.samples, run.events)


def unchanged(judgement):
    return [c for c in judgement.criteria if c.name == "nic-unchanged"]


def test_a_run_without_readings_has_no_such_criterion(make_run):
    assert unchanged(make_run().judged()) == []


def test_an_unchanged_network_passes(make_run):
    judgement = judged(make_run(), reading("before"), reading("after"))
    assert judgement.verdict == "pass"
    (found,) = unchanged(judgement)
    assert found.why == "read back 2 times without a difference; the kernel announced no change"


@pytest.mark.parametrize(
    ("readings", "why"),
    [
        (
            (reading("before"), reading("during", SLOW, second=30), reading("after", SLOW)),
            "b2 data0 receive: rate is 60mbit; declared is 400mbit; "
            "first seen during the run, at 2026-11-21T18:15:30.000+00:00, and after it",
        ),
        (
            (reading("before"), reading("during", SLOW, second=30), reading("after")),
            "b2 data0 receive: rate is 60mbit; declared is 400mbit; "
            "first seen during the run, at 2026-11-21T18:15:30.000+00:00, not after it",
        ),
        (
            (reading("before"), reading("after", SLOW)),
            "b2 data0 receive: rate is 60mbit; declared is 400mbit; seen after the run, not before it",
        ),
    ],
    ids=["to the end", "put back", "unnoticed until the end"],
)
def test_a_nic_that_changed_leaves_rates_open_and_is_named(make_run, readings, why):
    judgement = judged(make_run(real_quota=7e6), *readings)  # as slow as a NIC makes it
    (found,) = unchanged(judgement)
    assert (found.host, found.direction, found.verdict, found.why) == ("b2", "receive", "inconclusive", why)
    assert verdicts(judgement, *RATES) == {"inconclusive"}
    assert f"not judged: nic-unchanged (b2 receive): {why}" in {c.why for c in judgement.criteria}


def test_a_run_that_only_its_network_leaves_open_is_one_to_repeat(make_run):
    assert noisy(judged(make_run(), reading("before"), reading("after", SLOW)))


def test_a_rate_that_failed_asks_for_the_nics_once_more(make_run):
    assert rates_failed(judged(make_run(real_quota=7e6), reading("before"), reading("after")))
    assert not rates_failed(judged(make_run(lost_records=2), reading("before"), reading("after")))
    assert not rates_failed(judged(make_run(real_quota=7e6), reading("before"), reading("after", SLOW)))


def test_a_nic_that_carries_less_after_the_run_leaves_rates_open_with_every_reading(make_run):
    run = make_run(real_quota=7e6)
    both = reading("before"), reading("after")
    judgement = judged(run, *both, again=(after(0.15, 0.15, 0.149),))
    (found,) = unchanged(judgement)
    assert found.why == ("b2 data0 receive: after the run it carried 0.150, 0.150, 0.149 of its declared payload rate")
    assert verdicts(judgement, *RATES) == {"inconclusive"}
    judgement = judged(run, *both, again=(after(0.9, 0.998),))
    assert unchanged(judgement)[0].why.endswith("0.998 to 0.998 of the declared rate, in at most 2 readings")
    assert "fail" in verdicts(judgement, *RATES)


def test_a_move_that_a_changed_network_delays_is_not_blamed_and_one_on_a_busy_machine_is(make_run):
    undone = Done(False, "waited 180 s for the move")
    run = make_run(cpu_busy=0.9)
    run = replace(run, manifest=replace(run.manifest, facts=replace(run.manifest.facts, done=undone)))
    of = lambda judgement: next(c for c in judgement.criteria if c.name == "move-done")  # noqa: E731
    assert of(judged(run, reading("before"), reading("after"))).verdict == "fail"
    found = of(judged(run, reading("before"), reading("after", SLOW)))
    assert found.verdict == "inconclusive"
    assert found.why.startswith("not judged: nic-unchanged (b2 receive): b2 data0 receive: rate is 60mbit")


def test_facts_that_hold_stay_so_whatever_changed(make_run):
    judgement = judged(make_run(), reading("before"), reading("after", SLOW))
    facts = [c for c in judgement.criteria if c.name in ("move-done", "records-intact", "no-isr-shrink")]
    assert {c.verdict for c in facts} == {"pass"}
