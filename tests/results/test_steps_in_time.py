"""A step that comes to its end late is found, unless the machine may have been the cause."""

from dataclasses import replace

import pytest

from results.contract.network import LinkDifference, NetworkRecord, ShapingReading
from results.contract.schema import Sample, samples_table
from results.criteria import judge
from tests.results.stepped import STEP, stepped
from tests.results.synthetic import us

TIMED = replace(STEP, within_s=4.0)
"""It takes 3.9985 s, from 1.0015 s to 5 s."""


def found(steps, samples=()):
    manifest, _samples, events = stepped(steps=steps)
    judgement = judge(manifest, samples_table(samples), events)
    return next((each for each in judgement.criteria if each.name == "steps-in-time"), None)


def idle(until_s=9, busy=0.2):
    return [Sample(us(second), "machine", "cpu.busy", busy) for second in range(until_s)]


def test_a_step_within_its_time_passes_and_says_what_would_not():
    passed = found([TIMED], idle())
    assert (passed.verdict, passed.observed, passed.tolerance) == ("pass", pytest.approx(3.9985), "4.0 s")
    assert passed.power.text == "would have failed from 0.00 s more on"
    assert found([replace(TIMED, within_s=9.0)], idle()).power.value == pytest.approx(5.0015)


def test_a_late_step_fails_and_is_named():
    late = found([replace(TIMED, within_s=9.0), replace(TIMED, name="elected", within_s=1.5)], idle())
    assert late.verdict == "fail"
    assert late.why == "2-elected took 4.00 s of 1.5 s"


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        ([], "the machine's load was not sampled"),
        (idle(busy=0.97), "the CPU was 97.0 % busy"),
        ([*idle(), *(Sample(us(s), "machine", "cpu.steal", 0.1) for s in range(9))], "the CPU was 10.0 % stolen"),
        (
            [*idle(), *(Sample(us(s), "machine", "pressure.io", 0.5 * s) for s in range(9))],
            "for 50.0 % of the time every task waited for a disk",
        ),
        (
            [*idle(), *(Sample(us(s), "machine", "cpu.steal", 0.06 * (s in (2, 3, 4))) for s in range(9))],
            "others used or stole the CPU for 3.0 s",
        ),
        (
            [*idle(), *(Sample(us(s), "machine", "clock.offset", 1.7e9 + 3.0 * (s > 3)) for s in range(9))],
            "the clock was set by 3.00 s",
        ),
        (
            [each for each in idle() if each.ts_us not in (us(2), us(3), us(4))],
            "the runner itself stood still for 3.0 s",
        ),
    ],
)
def test_a_machine_that_may_have_slowed_it_down_leaves_it_open(samples, why):
    late = found([replace(TIMED, within_s=1.5)], samples)
    assert (late.verdict, late.why) == ("inconclusive", f"1-asked took 4.00 s of 1.5 s ({why})")


@pytest.mark.parametrize(("kafka", "verdict"), [(0.5, "inconclusive"), (1.9, "fail")])
def test_seconds_in_which_others_kept_the_cpu_busy_excuse_a_step_and_those_of_brokers_do_not(kafka, verdict):
    """Of two cores; the mean of the step is below what a busy machine has."""
    busy = [Sample(us(s), "machine", "cpu.busy", 0.97 if s in (2, 3, 4) else 0.2) for s in range(9)]
    used = [Sample(us(s), "b1", "jvm.cpu.seconds", kafka * s) for s in range(9)]
    watched = [Sample(us(s), "b1", "nic.rx.bytes", 0.0) for s in range(9)]
    late = found([replace(TIMED, within_s=2.5)], [*busy, *used, *watched])
    assert late.verdict == verdict
    assert ("others used or stole the CPU for 3.0 s" in late.why) is (verdict == "inconclusive")


def test_stolen_seconds_do_not_excuse_a_step_that_is_late_by_more():
    stolen = [Sample(us(s), "machine", "cpu.steal", 0.06 * (s == 3)) for s in range(9)]
    assert found([replace(TIMED, within_s=1.5)], [*idle(), *stolen]).verdict == "fail"


def test_a_runner_that_stood_still_for_less_than_a_step_is_late_does_not_excuse_it():
    looks = [each for each in idle() if each.ts_us != us(3)]
    assert found([replace(TIMED, within_s=1.5)], looks).verdict == "fail"


def test_a_busy_machine_does_not_excuse_a_step_that_was_late_while_it_was_idle():
    first = replace(TIMED, within_s=1.5)
    second = replace(TIMED, name="elected", from_us=us(20), to_us=us(24), within_s=1.5)
    busy_then_idle = [*idle(busy=1.0), *(Sample(us(s), "machine", "cpu.busy", 0.1) for s in range(9, 30))]
    assert found([first, second], busy_then_idle).why == "2-elected took 4.00 s of 1.5 s"


def test_steps_without_a_time_are_not_judged():
    assert found([STEP]) is None
    assert found([replace(TIMED, from_us=None, to_us=None)]) is None


@pytest.mark.parametrize(("changed", "verdict"), [(False, "fail"), (True, "inconclusive")])
def test_a_network_that_somebody_changed_leaves_it_open_by_name(changed, verdict):
    slow = (LinkDifference("b2", "data0", "receive", "rate is 1mbit; declared is 400mbit"),) if changed else ()
    readings = ShapingReading("2026-11-21T18:15:08.000+00:00", "during", slow)
    manifest, _samples, events = stepped(steps=[replace(TIMED, within_s=1.5)])
    judgement = judge(replace(manifest, network=NetworkRecord((readings,))), samples_table(idle()), events)
    late = next(each for each in judgement.criteria if each.name == "steps-in-time")
    assert late.verdict == verdict
    assert late.why.startswith("not judged: nic-unchanged (b2 receive): b2 data0 receive: rate is 1mbit") is changed
