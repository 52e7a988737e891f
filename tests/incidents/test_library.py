"""The library as a suite: each ready incident is an experiment whose fixed variant must pass."""

from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from testbed.errors import UsageError
from testbed.experiments.run_topology import heap_bytes
from testbed.incidents import replay
from testbed.incidents.library import PREFIX, find_experiment_or_incident
from testbed.incidents.read import READY, find, loads, ready_incidents
from testbed.incidents.replay import ReplayRequest, as_experiment, most_replicas
from testbed.runner.qualification_plan import plan
from testbed.runner.qualification_scope import QualificationScope
from testbed.runner.variant import Variant, of_case, resolve
from testbed.suites.suite import find_suite
from tests.incidents.files import SMALL, small


def test_the_suite_has_every_ready_incident_on_its_own_topology():
    cases = find_suite("incidents").cases("ci")
    assert [case.name for case in cases] == ready_incidents()
    for case in cases:
        resolved = resolve(of_case(case, "ci"))
        incident = find(case.name).fixed
        assert resolved.experiment.name == f"{PREFIX}{case.name}"
        assert (resolved.topology.name, resolved.settings) == (incident.topology.name, {"variant": "fixed"})
        assert resolved.overlay == incident.state.properties


def test_a_release_that_is_asked_for_replaces_that_of_the_file():
    (case,) = find_suite("incidents").cases("ci", ["sick-common-replica"])
    resolved = resolve(of_case(case, "ci", "4.2.1"))
    assert {host.kafka_version for host in resolved.topology.brokers} == {"4.2.1"}


def test_the_release_and_the_defects_that_the_fixed_variant_names_are_played(monkeypatch, tmp_path):
    text = (READY / "sick-common-replica.yaml").read_text(encoding="utf-8")
    assert text.count("kafka: 4.3.1") == 1
    changed = text.replace("kafka: 4.3.1", "kafka: 4.2.1\n  defects: [log-not-deleted]")
    (tmp_path / "older.yaml").write_text(changed, encoding="utf-8")
    monkeypatch.setattr("testbed.incidents.read.READY", tmp_path)
    for kafka, release in ((None, "4.2.1"), ("4.3.1", "4.3.1")):
        resolved = resolve(Variant("older", f"{PREFIX}older", kafka=kafka))
        assert {host.kafka_version for host in resolved.topology.brokers} == {release}
        assert set(resolved.defects) == {"b1", "b2", "b3"}


def test_the_heap_follows_from_the_partitions_of_the_incident(monkeypatch):
    """An incident with thousands of partitions, as after a capture, was replayed in 512 MiB."""
    text = SMALL.replace("partitions: 4,", "partitions: 500,").replace("partitions: 2,", "partitions: 300,")
    few, many = small().broken, loads(text).broken
    assert [most_replicas(each) for each in (few, many)] == [6, 800]
    made = []

    def up(topology, **_options):
        made.append(topology)
        return SimpleNamespace(down=lambda: None)

    monkeypatch.setattr(replay.Testbed, "up", up)
    monkeypatch.setattr(replay, "fingerprint", lambda: {"memory_bytes": 8 << 30})
    for incident in (few, many):
        with ExitStack() as stack:
            replay._testbed(ReplayRequest(incident), as_experiment(incident, 0), "run-123456", stack, print)
    assert [{host.jvm.heap_bytes for host in topology.brokers} for topology in made] == [{None}, {heap_bytes(800)}]


def test_a_replay_on_a_testbed_with_too_little_heap_says_so(monkeypatch, tmp_path):
    """Its brokers collected garbage without end, and the command said nothing of it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    text = SMALL.replace("partitions: 4,", "partitions: 500,").replace("partitions: 2,", "partitions: 300,")
    for incident, words in ((small().broken, []), (loads(text).broken, ["a broker gets up to 800 replicas"])):
        testbed, said = SimpleNamespace(name="one", topology=incident.topology, close=lambda: None), []
        monkeypatch.setattr(replay.Testbed, "attach", lambda _name, testbed=testbed: testbed)
        for name in ("require_whole_change", "reconfigure"):
            monkeypatch.setattr(replay, name, lambda *_: None)
        request, experiment = ReplayRequest(incident, on="one"), as_experiment(incident, 0)
        with ExitStack() as stack:
            assert replay._testbed(request, experiment, "run-123456", stack, said.append) is testbed
        assert [line.partition(",")[0] for line in said] == words


def test_a_qualification_plays_it():
    scope = QualificationScope(suites=("incidents",), paired=(), upgrades=False)
    variants, groups = plan("4.3.1", ["4.2.1"], scope)
    assert [group.name for group in groups] == [f"incidents/{name}" for name in ready_incidents()]
    assert {variant.kafka for variant in variants} == {"4.2.1", "4.3.1"}


def test_another_name_is_refused_with_the_nearest_one():
    with pytest.raises(UsageError, match="did you mean dead-target"):
        find_experiment_or_incident("incident-dead-targets")
