"""A replay whose records were late while the machine was unfit, for seconds that no 11 s show."""

import pytest

from results.contract.logs import HostLog, LogFinding
from results.contract.manifest import Records
from results.contract.schema import Sample
from results.criteria import judge
from testbed.incidents.read import loads
from tests.incidents.files import SMALL
from tests.incidents.runs import BROKERS, CLEAN, at, event, manifest, nics, tables

LATENCY = "      - produce_latency: {percentile: 99%, max: 500ms}\n      - move_done: {within: 20s}\n"
INCIDENT = loads(SMALL.replace("  - expect:\n", f"  - expect:\n{LATENCY}")).fixed


def load(*, busy=0.93, brokers=0.9, seconds=(6, 8)):
    used = 0.0
    for second in range(-2, 40):
        over = seconds[0] < second <= seconds[1]
        yield Sample(at(second), "machine", "cpu.busy", busy if over else 0.4)
        yield Sample(at(second), "machine", "cpu.steal", 0.0)
        used += brokers if over else 0.3
        for host in BROKERS:
            yield Sample(at(second), host, "nic.rx.bytes", 1e6 * second)
            yield Sample(at(second), host, "jvm.cpu.seconds", used / len(BROKERS))


def latencies(late_ms, seconds):
    for second in range(1, 31):
        late = 40 if seconds[0] < second <= seconds[1] else 0
        for ms, count in ((20, 100 - late), (late_ms, late)):
            yield Sample(at(second), "producer-1", "client.produce.latency", float(count), label=str(1000 * ms))


def judged(samples, *, done=20, logs=CLEAN):
    own = [event(2, "incident.entry", entry.name, planned_s=2.0, actual_s=2.0) for entry in INCIDENT.entries]
    own += [event(3, "move.started", "orders"), event(done, "move.done", "orders")]
    own.append(event(30, "throttle.found", "throttle", left=[], unread=[]))
    isr = [Sample(at(s), "driver", "topic.isr", 2.0, "orders") for s in range(-2, 40)]
    run = manifest(INCIDENT, records=Records(9, 9, 0, 0, 0), logs=logs, measured=nics())
    found = judge(run, *tables([*samples, *isr], own)).criteria
    return {each.label: each for each in found}


def test_late_records_of_unfit_seconds_are_not_judged():
    found = judged([*load(), *latencies(877, (6, 8))])
    late, machine = found["produce-latency"], found["machine-load (machine)"]
    assert (late.verdict, machine.verdict) == ("inconclusive", "inconclusive")
    assert late.why.startswith(
        "not judged: machine-load (machine): the machine was 93.0 % busy (45.0 % by Kafka) in the worst of 2.0 s, "
        "the first at +6.0 s; without this time: 0.99 of 2800 records within 20 ms"
    )
    assert "0.99 of 2800 records within 877 ms" in late.why
    assert late.observed == 0.877
    others = {name: each.verdict for name, each in found.items() if each not in (late, machine)}
    assert {*others.values()} == {"pass"}, others


@pytest.mark.parametrize(
    "samples",
    [
        [*load(brokers=1.9), *latencies(877, (6, 8))],
        [*load(seconds=(20, 22)), *latencies(877, (6, 8))],
        [*load(), *latencies(3900, (6, 8))],
        [*load(), *latencies(877, (3, 12))],
        [*load(busy=0.8), *latencies(877, (6, 8))],
        [*(each for each in load() if each.metric != "jvm.cpu.seconds"), *latencies(877, (6, 8))],
    ],
    ids=["by brokers", "another time", "longer waits", "other seconds too", "not so busy", "not known by whom"],
)
def test_records_that_are_late_for_another_reason_fail(samples):
    found = judged(samples)
    assert found["produce-latency"].verdict == "fail"
    assert found["machine-load (machine)"].verdict == "pass"


def test_a_move_that_is_late_by_the_unfit_time_alone_is_not_judged():
    assert judged([*load(), *latencies(20, (0, 0))], done=23.5)["move-done"].verdict == "inconclusive"
    assert judged([*load(), *latencies(20, (0, 0))], done=24.5)["move-done"].verdict == "fail"


SLOW = "org.apache.kafka.controller.EventPerformanceMonitor"


def slow_event(at_s, ms, count=1):
    text = f"Exceptionally slow controller event writeNoOpRecord took {ms} ms."
    return (HostLog("b1", None, (LogFinding("b1", at(at_s), "ERROR", SLOW, text, count),)), *CLEAN[1:])


@pytest.mark.parametrize(
    ("logs", "samples", "verdict"),
    [
        (slow_event(8.2, 2400), load(), "inconclusive"),
        (slow_event(8.2, 4300), load(), "fail"),
        (slow_event(15, 2400), load(), "fail"),
        (slow_event(8.2, 2400, count=2), load(), "fail"),
        (slow_event(8.2, 4300), load(seconds=(2, 28)), "inconclusive"),
    ],
    ids=["in unfit seconds", "longer", "another time", "more than one", "a machine that is always busy"],
)
def test_a_controllers_slow_event_is_not_kafkas_where_the_machine_was_unfit(logs, samples, verdict):
    assert judged([*samples, *latencies(20, (0, 0))], logs=logs)["logs-clean (b1)"].verdict == verdict
