"""A replay has the same preconditions as an experiment: NICs, machine, and what brokers say."""

from dataclasses import replace

import pytest

from results.contract.logs import HostLog, LogFinding
from results.contract.manifest import Records
from results.contract.schema import Sample
from results.criteria import judge
from results.criteria.incident import deviation
from testbed.incidents.read import loads
from testbed.incidents.replay import allowed
from testbed.probes.allow_list import shipped, unexplained
from testbed.probes.log_entries import entries
from tests.incidents.files import SMALL, small
from tests.incidents.runs import CLEAN, at, event, machine, manifest, nics, tables

RATE = "      - rate: {host: b1, direction: transmit, max: 9MB/s, window: 5s}\n"
PASSING = loads(SMALL.replace("  - expect:\n", f"  - expect:\n{RATE}")).fixed


def run_of(*, busy=0.4, until=40, logs=CLEAN, measured=None, more=()):
    own = [event(2, "incident.entry", entry.name, planned_s=2.0, actual_s=2.0) for entry in PASSING.entries]
    own += [event(3, "move.started", "orders"), event(20, "move.done", "orders")]
    own.append(event(30, "throttle.found", "throttle", left=[], unread=[]))
    samples = [*machine(busy, until), *more]
    samples += [Sample(at(s), "driver", "topic.isr", 2.0, "orders") for s in range(-2, 40)]
    samples += [Sample(at(s), "b1", "nic.tx.bytes", s * 1e6) for s in range(-2, 40)]
    found = manifest(
        PASSING, records=Records(9, 9, 0, 0, 0), logs=logs, measured=nics() if measured is None else measured
    )
    return found, judge(found, *tables(samples, own))


def test_with_sound_conditions_everything_stands_as_it_was_judged():
    _, judgement = run_of()
    assert judgement.verdict == "pass", judgement.criteria
    assert [c.name for c in judgement.criteria] == [
        "timeline",
        "rate",
        "isr",
        "records-intact",
        "throttle-removed",
        *["logs-clean"] * 3,
        *["nic-measured"] * 6,
        "machine-load",
    ]


@pytest.mark.parametrize(
    ("conditions", "unsound"),
    [
        ({"measured": nics(0.8)}, "nic-measured (b1 transmit)"),
        ({"measured": ()}, "nic-measured (b1 transmit)"),
        ({"busy": 0.95}, "machine-load (machine)"),
        ({"until": 12}, "machine-load (machine)"),
        ({"more": [Sample(at(0), "machine", "clock.offset", 1.7e9)]}, "clock-steady: no clock was read twice"),
    ],
    ids=["a NIC off its rate", "no NIC measured", "a busy machine", "load not sampled to the end", "a clock read once"],
)
def test_with_unsound_conditions_no_rate_and_no_time_is_judged_and_facts_are(conditions, unsound):
    _, judgement = run_of(**conditions)
    by_name = {c.name: c for c in judgement.criteria}
    assert {by_name[name].verdict for name in ("timeline", "records-intact", "isr")} == {"pass"}
    assert by_name["rate"].verdict == "inconclusive"
    assert by_name["rate"].why.startswith(f"not judged: {unsound}")
    assert judgement.verdict == "inconclusive"


def test_an_error_in_a_log_fails_the_replay_and_is_not_as_the_file_expects():
    error = LogFinding("b2", at(0), "ERROR", "kafka.log.LogManager", "it failed", 1)
    run, judgement = run_of(logs=(HostLog("b1"), HostLog("b2", None, (error,)), HostLog("b3")))
    assert judgement.verdict == "fail"
    assert deviation(run.incident, judgement.criteria) == "failed and should not have: logs-clean"
    warned = HostLog("b2", None, (replace(error, level="WARN"),))
    assert run_of(logs=(HostLog("b1"), warned, HostLog("b3")))[1].verdict == "pass"
    assert run_of(logs=None)[1].verdict == "inconclusive"


def test_a_file_may_expect_that_brokers_complain():
    incident = loads(SMALL.replace("failures: [throttle-removed]", "failures: [throttle-removed, logs-clean]"))
    assert incident.broken.expected_failures == ("throttle-removed", "logs-clean")


LINE = "[2026-11-21 21:39:15,554] ERROR {} (state.change.logger)\n"
CREATING = (
    "[Broker id=3] Expected partition {}-0 with topic id hSibU4hLQ-esIPl86BkQ2w to exist, "
    "but it was missing. Creating..."
)


def test_a_replica_that_the_incident_moves_may_be_new_where_it_moves_to():
    incident = small().broken
    known = [*shipped(), *allowed(incident)]

    def left(topic, host):
        return unexplained(list(entries(LINE.format(CREATING.format(topic)))), host, "4.3.1", known)

    assert left("orders", "b3") == []
    assert len(left("clicks", "b3")) == 1
    assert len(left("orders", "b2")) == 1


SLOW = (
    "[2026-11-21 21:39:15,554] ERROR [QuorumController id=3] Exceptionally slow controller event writeNoOpRecord "
    "took 3504 ms. (org.apache.kafka.controller.EventPerformanceMonitor)\n"
)


def test_what_a_broker_that_was_killed_on_purpose_leaves_in_logs_is_known_and_without_a_fault_it_is_not():
    incident = small()
    assert unexplained(list(entries(SLOW)), "b1", "4.3.1", [*shipped(), *allowed(incident.broken)]) == []
    assert len(unexplained(list(entries(SLOW)), "b1", "4.3.1", [*shipped(), *allowed(incident.fixed)])) == 1
