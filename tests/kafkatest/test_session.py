"""A session of ducktape: its command, what its output says, its reports, the outcomes, and the runs in the store."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from results.contract.schema import Sample
from testbed.cli.commands import kafkatest
from testbed.errors import TestbedError, UsageError
from testbed.kafkatest import run as running
from testbed.kafkatest import session as sessions
from testbed.kafkatest.environment import TestEnvironment
from testbed.kafkatest.hosts import kafkatest_cluster, names_file, topology_of
from testbed.kafkatest.record import parameters_of, samples_of
from testbed.kafkatest.run import KafkatestRequest, PlannedTests, outcomes_of, planned, symbols_of
from testbed.kafkatest.session import TestReport, TestSession, progress_of
from testbed.network.addresses import AddressPlan
from tests.kafkatest.made_up import make_checkout, system_test

PYTHON = TestEnvironment(Path("/venv/bin/python"), "Python 3.11", ())


def session(folder):
    return TestSession(SimpleNamespace(python_path=Path("/checkout/tests")), PYTHON, folder, ("--repeat", "2"))


def standing(hosts=2):
    topology = topology_of(hosts, 400_000_000)
    return SimpleNamespace(
        name="mine", topology=topology, plan=AddressPlan(7, tuple(host.name for host in topology.hosts))
    )


def report(test, status="PASS", summary="", folder="/out/test"):
    return TestReport(test, status, summary, 100.0, 130.5, folder)


def write_report(root, test, index, **fields):
    """Write what ducktape leaves of one test."""
    place = root / f"ducktape/2026-11-24--001/MovingTest/test_move/{index}"
    place.mkdir(parents=True)
    known = {"test_status": "FAIL", "summary": "why", "start_time": 1.0, "stop_time": 3.5, "results_dir": str(place)}
    (place / "report.json").write_text(json.dumps({"test_id": test.id, **known, **fields}))


@pytest.mark.parametrize(("lacking", "user"), [((), []), (("CAP_SYS_ADMIN",), ["--user", "--map-root-user"])])
def test_ducktape_runs_in_a_mount_namespace_with_the_names(tmp_path, monkeypatch, lacking, user):
    monkeypatch.setattr(sessions, "lacking_capabilities", lambda: lacking)
    words = session(tmp_path).command(["a.py"], tmp_path / "cluster.json", tmp_path / "hosts")
    assert words[: 4 + len(user)] == ["unshare", *user, "--mount", "--propagation", "private"]
    assert words[words.index("-c") + 2 :][:5] == [str(tmp_path / "hosts"), "/venv/bin/python", "-m", "ducktape", "a.py"]
    assert "ducktape.cluster.json.JsonCluster" in words
    assert words[-2:] == ["--repeat", "2"]


def test_a_user_who_can_have_no_namespace_is_refused_before_hosts_are_made(tmp_path, monkeypatch):
    def refuse(words):
        assert words[-2:] == ["/etc/hosts", "true"]
        raise TestbedError("unshare: unshare failed: Operation not permitted")

    plan = SimpleNamespace(tests=(), obstacles={}, runnable=(system_test(),))
    monkeypatch.setattr(sessions, "run_program", refuse)
    monkeypatch.setattr(running, "planned", lambda *_rest: plan)
    request = KafkatestRequest("checkout", out=str(tmp_path / "out"), store=str(tmp_path / "store"))
    with pytest.raises(TestbedError, match=r"the hosts' names: unshare: .* not permitted\. Run it as root, or allow"):
        running.run_kafkatest(request, lambda _text: None)
    assert not (tmp_path / "out").exists()


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
    write_report(tmp_path, tests[1], 1)
    (tmp_path / "ducktape/latest").symlink_to(tmp_path / "ducktape/2026-11-24--001")
    found = session(tmp_path).reports(tests)
    assert [(each.test, each.status, each.seconds) for each in found] == [(tests[1], "FAIL", 2.5)]


def test_every_test_has_an_outcome():
    passed, failed, absent, blocked = (system_test(n=n) for n in range(4))
    plan = SimpleNamespace(tests=(passed, failed, absent, blocked), obstacles={blocked.id: "no netem"})
    reports = [report(passed, folder="/out/1"), report(failed, "FAIL", "boom", "/out/2")]
    found = outcomes_of(plan, reports, {"/out/1": "run-1"}, "  the end")
    assert [each.status for each in found] == ["pass", "fail", "not done", "not run"]
    assert [found[0].run_id, found[1].why, found[3].why] == ["run-1", "boom", "no netem"]
    assert "the end" in found[2].why


def test_each_repetition_has_its_own_report_and_outcome(tmp_path):
    test = system_test()
    # The name of the tenth comes before that of the second.
    for index, status in ((1, "PASS"), (2, "FAIL"), (10, "PASS")):
        write_report(tmp_path, test, index, test_status=status, start_time=float(index), stop_time=index + 0.5)
    reports = session(tmp_path).reports([test] * 4)
    assert [(each.status, each.started) for each in reports] == [("PASS", 1.0), ("FAIL", 2.0), ("PASS", 10.0)]
    plan = SimpleNamespace(tests=(test,) * 4, obstacles={})
    runs = {each.folder: f"run-{Path(each.folder).name}" for each in reports}
    found = [(each.status, each.run_id) for each in outcomes_of(plan, reports, runs, "")]
    assert found == [("pass", "run-1"), ("fail", "run-2"), ("pass", "run-10"), ("not done", None)]


def test_the_test_that_ctrl_c_ended_has_not_failed(tmp_path):
    tests = [system_test(n=n) for n in (1, 2)]
    write_report(tmp_path, tests[0], 1)
    write_report(tmp_path, tests[1], 2, summary="KeyboardInterrupt()\nTraceback (most recent call last):")
    assert [each.test for each in session(tmp_path).reports(tests, interrupted=True)] == tests[:1]
    # ducktape ends a test that hangs in the same way: that is its failure.
    assert [each.test for each in session(tmp_path).reports(tests)] == tests


def test_arguments_given_for_all_tests_are_not_given_again_by_name():
    one, blocked = system_test(bounce=True), system_test(name="test_other", bounce=True)
    plan = SimpleNamespace(symbols=("core",), obstacles={}, runnable=(one, one), options=())
    assert symbols_of(plan) == ("core",)
    plan.obstacles = {blocked.id: "no netem"}
    assert symbols_of(plan) == [one.symbol]
    # ducktape refuses arguments of a test together with these.
    plan.options = ("--parameters", '{"bounce": true}')
    assert symbols_of(plan) == [f"{one.file}::MovingTest.test_move"]


def test_tests_to_leave_out_are_named_as_those_to_run(tmp_path, monkeypatch):
    folder = make_checkout(tmp_path / "kafka")
    file = folder / "tests/kafkatest/tests/core/moving_test.py"
    asked = []

    def collected(_checkout, _python, arguments):
        asked.extend(arguments)
        return (replace(system_test(), file=file),)

    monkeypatch.setattr(running, "collected", collected)
    monkeypatch.setattr(running, "environment", lambda *_rest: PYTHON)
    monkeypatch.setattr(running, "build_under_test", lambda *_rest: SimpleNamespace(version="9.9.9"))
    monkeypatch.setattr(running, "jar_names", lambda _home: [])
    request = KafkatestRequest(str(folder), exclude=("alone_test", "moving_test::MovingTest.test_move"))
    plan = planned(request, lambda _text: None)
    # ducktape runs in a folder of its own, and ignores a name that leads to no file.
    wanted = ["--exclude", str(file.with_name("alone_test.py")), f"{file}::MovingTest.test_move"]
    assert asked[-3:] == list(plan.options[-3:]) == wanted
    with pytest.raises(UsageError, match=r"alone_tst: .* did you mean .*alone_test\.py"):
        planned(replace(request, exclude=("alone_tst",)), lambda _text: None)


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


def test_a_plan_is_one_json_document_too():
    able, blocked = system_test(bounce=True), system_test(name="test_other", nodes=5)
    checkout, home = (
        SimpleNamespace(folder=Path("/checkout"), version="9.9.9"),
        SimpleNamespace(name="dev", version="9"),
    )
    plan = PlannedTests(checkout, PYTHON, (able, blocked), {blocked.id: "no netem"}, (home,), 3, (), ())
    told = json.loads(kafkatest.plan_as_json(plan))
    assert (told["checkout"], told["version"], told["kafka"], told["hosts"]) == ("/checkout", "9.9.9", {"dev": "9"}, 3)
    assert told["tests"] == [
        {"test": able.name, "arguments": {"bounce": True}, "hosts": 3, "cannot_run": None},
        {"test": blocked.name, "arguments": {}, "hosts": 5, "cannot_run": "no netem"},
    ]
