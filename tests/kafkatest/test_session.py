"""A session of ducktape: its command, what its output says, its reports, the outcomes, and the runs in the store."""

import json
from pathlib import Path
from types import SimpleNamespace

from results.contract.schema import Sample
from testbed.cli.commands import kafkatest
from testbed.kafkatest.environment import TestEnvironment
from testbed.kafkatest.hosts import kafkatest_cluster, names_file, topology_of
from testbed.kafkatest.record import parameters_of, samples_of
from testbed.kafkatest.run import outcomes_of
from testbed.kafkatest.session import TestReport, TestSession, progress_of
from testbed.network.addresses import AddressPlan
from tests.kafkatest.made_up import system_test

PYTHON = TestEnvironment(Path("/venv/bin/python"), "Python 3.11", ())


def session(folder):
    return TestSession(SimpleNamespace(python_path=Path("/checkout/tests")), PYTHON, folder, ("--repeat", "2"))


def standing(hosts=2):
    topology = topology_of(hosts, 400_000_000)
    return SimpleNamespace(
        name="mine", topology=topology, plan=AddressPlan(7, tuple(host.name for host in topology.hosts))
    )


def report(test, status="PASS", summary=""):
    return TestReport(test, status, summary, 100.0, 130.5, "/out/test")


def test_ducktape_runs_in_a_mount_namespace_with_the_names(tmp_path):
    words = session(tmp_path).command(["a.py"], tmp_path / "cluster.json", tmp_path / "hosts")
    assert words[:4] == ["unshare", "--mount", "--propagation", "private"]
    assert words[words.index("-c") + 2 :][:5] == [str(tmp_path / "hosts"), "/venv/bin/python", "-m", "ducktape", "a.py"]
    assert "ducktape.cluster.json.JsonCluster" in words
    assert words[-2:] == ["--repeat", "2"]


def test_names_lead_to_the_shaped_nics_and_follow_the_machines_own():
    text = names_file(standing(), "127.0.0.1 localhost\n")
    assert text == "127.0.0.1 localhost\n198.19.7.11 knode01\n198.19.7.12 knode02\n"


def test_the_cluster_has_nodes_of_no_type_and_the_tests_own_login(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    nodes = kafkatest_cluster(standing())["nodes"]
    assert [node["ssh_config"]["host"] for node in nodes] == ["knode01", "knode02"]
    assert {node["ssh_config"]["user"] for node in nodes} == {"ducker"}
    assert all("node_type" not in node for node in nodes)
    # Trogdor takes this address for Kafka's.
    assert [node["ssh_config"]["hostname"] for node in nodes] == ["198.19.7.11", "198.19.7.12"]


def test_lines_of_ducktape_become_progress():
    begin = "[INFO:2026-11-24 22:00:00,000]: RunnerClient: kafkatest.tests.core.a_test.A.test_b.c=True: "
    assert progress_of(f"{begin}Running...\n") == "core.a_test.A.test_b.c=True: runs"
    assert progress_of(f"{begin}PASS\n") == "core.a_test.A.test_b.c=True: PASS"
    assert progress_of(f"{begin}FAIL: TimeoutError('x')\n") == "core.a_test.A.test_b.c=True: FAIL: TimeoutError('x')"
    assert progress_of(f"{begin}Setting up...\n") == progress_of("anything else\n") == ""


def test_each_tests_own_report_is_read_also_of_an_interrupted_session(tmp_path):
    tests = [system_test(bounce=True), system_test(bounce=False)]
    place = tmp_path / "ducktape/2026-11-24--001/MovingTest/test_move/1"
    place.mkdir(parents=True)
    fields = {"test_status": "FAIL", "summary": "why", "start_time": 1.0, "stop_time": 3.5, "results_dir": str(place)}
    (place / "report.json").write_text(json.dumps({"test_id": tests[1].id, **fields}))
    (tmp_path / "ducktape/latest").symlink_to(tmp_path / "ducktape/2026-11-24--001")
    found = session(tmp_path).reports(tests)
    assert [(each.test, each.status, each.seconds) for each in found] == [(tests[1], "FAIL", 2.5)]


def test_every_test_has_an_outcome():
    passed, failed, absent, blocked = (system_test(n=n) for n in range(4))
    plan = SimpleNamespace(tests=(passed, failed, absent, blocked), obstacles={blocked.id: "no netem"})
    found = outcomes_of(plan, [report(passed), report(failed, "FAIL", "boom")], {passed.id: "run-1"}, "  the end")
    assert [each.status for each in found] == ["pass", "fail", "not done", "not run"]
    assert [found[0].run_id, found[1].why, found[3].why] == ["run-1", "boom", "no netem"]
    assert "the end" in found[2].why


def test_a_run_is_known_by_its_test_and_arguments():
    assert parameters_of(system_test(bounce=True, count=3, quorum="ZK"), {"nic": "1gbit"}) == {
        "nic": "1gbit",
        "test": "moving_test.MovingTest.test_move",
        "argument.bounce": "true",
        "argument.count": 3,
        "argument.quorum": "ZK",
    }


def test_only_a_test_that_passed_has_a_duration():
    busy = [Sample(int(at * 1e6), "machine", "cpu.busy", 0.5) for at in (99.0, 110.0, 131.0)]
    found = samples_of(report(system_test()), busy)
    assert [(each.metric, each.value) for each in found] == [("cpu.busy", 0.5), ("system_test.seconds", 30.5)]
    assert [each.metric for each in samples_of(report(system_test(), "FAIL"), busy)] == ["cpu.busy"]


def test_hosts_that_stay_are_named_with_commands_that_are_taken():
    told = kafkatest.as_text(SimpleNamespace(outcomes=(), folder=Path("/out"), kept="mine"))
    assert told.splitlines()[-1] == "the hosts stay: testbed exec mine HOST -- COMMAND, testbed down mine"
