"""A replay stands on the same ground as an experiment: NICs, machine, and what brokers say."""

from dataclasses import replace

import pytest

from results.contract.logs import HostLog, LogFinding
from results.contract.manifest import NicMeasurement
from results.contract.schema import Sample, overall
from results.contract.verdict import Finding
from testbed.incidents.evidence import US, Evidence
from testbed.incidents.ground import allowed, judge_ground, on_ground
from testbed.incidents.judgement import as_foretold
from testbed.incidents.read import loads
from testbed.probes.logwatch import entries, shipped, unexplained
from tests.incidents.files import SMALL, small

BROKERS = ("b1", "b2")
T0 = 1_700_000_000 * US
CLEAN = tuple(HostLog(host) for host in BROKERS)


def nics(ratio=0.99):
    return tuple(
        NicMeasurement(host, "data0", direction, 400_000_000, 47e6, ratio, 2.0)
        for host in BROKERS
        for direction in ("transmit", "receive")
    )


def evidence(busy=0.4, until=40):
    samples = [
        Sample(T0 + second * US, "machine", metric, value)
        for second in range(-2, until)
        for metric, value in (("cpu.busy", busy), ("cpu.steal", 0.0))
    ]
    return Evidence(samples, [], T0, T0 + 30 * US)


def expected(verdict="pass"):
    return [
        Finding(name, None, None, "that", "seen", "", "none", verdict, "because", ("log.bytes",))
        for name in ("timeline", "rate", "move-done", "records-intact", "isr")
    ]


def judged(*, found=None, logs=CLEAN, **conditions):
    measured = conditions.pop("nics", nics())
    ground = judge_ground(measured, BROKERS, found or evidence(**conditions))
    return on_ground(expected(), ground, logs, BROKERS)


def test_on_firm_ground_everything_stands_as_it_was_judged():
    criteria = judged()
    assert overall(criteria) == "pass"
    assert [c.name for c in criteria] == [
        *(c.name for c in expected()),
        *["logs-clean"] * 2,
        *["nic-measured"] * 4,
        "machine-load",
    ]


@pytest.mark.parametrize(
    ("conditions", "shaky"),
    [
        ({"nics": nics(0.8)}, "nic-measured (b1 transmit)"),
        ({"nics": ()}, "nic-measured (b1 transmit)"),
        ({"busy": 0.95}, "machine-load (machine)"),
        ({"until": 12}, "machine-load (machine)"),
    ],
    ids=["a NIC off its rate", "no NIC measured", "a busy machine", "load not sampled to the end"],
)
def test_on_shaky_ground_no_rate_and_no_time_is_judged_and_facts_are(conditions, shaky):
    by_name = {c.name: c for c in judged(**conditions)}
    assert {name: by_name[name].verdict for name in ("timeline", "records-intact", "isr")} == {
        "timeline": "pass",
        "records-intact": "pass",
        "isr": "pass",
    }
    for name in ("rate", "move-done"):
        assert by_name[name].verdict == "inconclusive"
        assert by_name[name].why.startswith(f"not judged: {shaky}")
    assert overall(judged(**conditions)) == "inconclusive"


def test_an_error_in_a_log_fails_the_replay_and_is_not_as_the_file_foretells():
    said = LogFinding("b2", T0, "ERROR", "kafka.log.LogManager", "it failed", 1)
    criteria = judged(logs=(HostLog("b1"), HostLog("b2", None, (said,))))
    assert overall(criteria) == "fail"
    remedy = small().remedy
    assert as_foretold(remedy, criteria) == "failed and should not have: logs-clean"
    warned = HostLog("b2", None, (replace(said, level="WARN"),))
    assert overall(judged(logs=(HostLog("b1"), warned))) == "pass"
    assert overall(judged(logs=None)) == "inconclusive"


def test_a_file_may_foretell_that_brokers_complain():
    incident = loads(SMALL.replace("fails: [throttle-removed]", "fails: [throttle-removed, logs-clean]"), "x.yaml", {})
    assert incident.faulty.fails == ("throttle-removed", "logs-clean")


LINE = "[2026-11-21 21:39:15,554] ERROR {} (state.change.logger)\n"
CREATING = (
    "[Broker id=3] Expected partition {}-0 with topic id hSibU4hLQ-esIPl86BkQ2w to exist, "
    "but it was missing. Creating..."
)


def test_a_replica_that_the_incident_moves_may_be_new_where_it_moves_to():
    incident = small().faulty
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
    assert unexplained(list(entries(SLOW)), "b1", "4.3.1", [*shipped(), *allowed(incident.faulty)]) == []
    assert len(unexplained(list(entries(SLOW)), "b1", "4.3.1", [*shipped(), *allowed(incident.remedy)])) == 1
