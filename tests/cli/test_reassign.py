"""`testbed reassign …` from its words to its exit code, against a fake cluster."""

import json
import threading
from dataclasses import replace

import pytest

import testbed.kafka.admin
from testbed.cli.main import main
from testbed.cli.reassign_report import ExecutionNotes
from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.owner import Owner
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.job import Job, JobControl, JobFolder
from testbed.reassignment.plan import Plan
from testbed.reassignment.plan_file import load_plan, plan_from_json
from testbed.wait import wait_for
from tests.fakes.kraft import Controller, KraftAdmin

HERE = ["--bootstrap", "fake:9092"]
PLAN = ["reassign", "plan", *HERE, "--drain", "3", "--out"]
TPS = [TopicPartition("t", n) for n in range(4)]
MOVED = Plan(dict.fromkeys(TPS, (1, 3)))
DEAD = Owner(1, 1, "another boot")


@pytest.fixture
def kraft(monkeypatch, tmp_path):
    """A cluster that carries out reassignments, for every command: four partitions on brokers 1 and 2."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    fake = KraftAdmin(Controller.of(dict.fromkeys(TPS, (1, 2)), {1, 2, 3}))
    monkeypatch.setattr(testbed.kafka.admin, "Admin", lambda _bootstrap, **_named: fake)
    return fake


@pytest.fixture
def moved(tmp_path):
    """The path of the plan `MOVED`."""
    path = tmp_path / "plan.json"
    path.write_text(MOVED.to_json())
    return str(path)


def execute(plan, *words):
    return main(["reassign", "execute", *HERE, "--plan", plan, "--reassignment-poll-interval-ms", "1", *words])


def stored(mode, owner, limits=None):
    job = replace(Job.new("fake:9092", "fake-cluster", mode, MOVED), owner=owner)
    JobFolder().write(job, JobControl(limits or BatchLimits()))
    return job


def test_a_plan_that_cannot_be_written_is_refused_before_the_cluster_is_asked(cluster, capsys):
    assert main([*PLAN, "/dev/null/there/plan.json"]) == 64
    assert "/dev/null/there/plan.json: /dev/null is no folder that can be written to" in capsys.readouterr().err
    assert cluster.made == []


def test_a_plan_is_written_into_a_new_folder(cluster, tmp_path):
    path = tmp_path / "new" / "plan.json"
    assert main([*PLAN, str(path)]) == 0
    assert [sorted(target) for target in load_plan(path).targets.values()] == [[1, 2]]


def test_what_the_controller_refuses_is_printed_once(kraft, moved, capsys):
    kraft.refused, asked = {TPS[0]: "INVALID_REPLICA_ASSIGNMENT"}, []

    def accept_the_fourth(call, _args):
        if call == "alter_reassignments":
            asked.append(call)
            if len(asked) == 4:
                kraft.refused = {}

    kraft.hook = accept_the_fourth
    assert execute(moved) == 0
    told = capsys.readouterr().err
    failed = "refused: alter reassignments failed for 1 of {} partitions"
    assert [told.count(failed.format(of)) for of in (4, 1)] == [1, 1], told


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ([], "unbatched"),
        (["--reassignment-batch-size", "0"], "unbatched"),
        (["--reassignment-batch-size", "2"], "batched"),
        (["--incremental"], "incremental"),
    ],
)
def test_a_limit_of_0_is_none(kraft, moved, words, mode):
    modes = []

    def note(call, _args):
        if call == "alter_reassignments":
            modes.extend(job.mode for job in JobFolder().all())

    kraft.hook = note
    assert execute(moved, *words) == 0
    assert set(modes) == {mode}


def test_a_limit_for_a_plan_that_was_requested_whole_is_refused(kraft, capsys):
    stored("unbatched", Owner.this_process())
    assert main(["reassign", "set", *HERE, "--reassignment-batch-size", "5"]) == 64
    assert "requested its whole plan at once: a limit would change nothing" in capsys.readouterr().err
    assert main(["reassign", "set", *HERE, "--throttle", "none"]) == 0


def test_a_move_without_a_process_has_no_step_that_moves(kraft, capsys):
    stored("incremental", DEAD, BatchLimits(1, 2))
    assert main(["reassign", "status", *HERE, "--json"]) == 0
    partitions = json.loads(capsys.readouterr().out)["partitions"]
    assert {(each["state"], each["why"]) for each in partitions} == {("deferred", "no process carries it out")}


def test_only_a_step_that_the_controller_lists_is_in_flight(kraft, capsys):
    kraft.controller.tick = lambda: None
    kraft.controller.alter({TPS[0]: (1, 3)})
    stored("incremental", Owner.this_process(), BatchLimits(1, 2))
    assert main(["reassign", "status", *HERE, "--json"]) == 0
    due = "its step is due; the controller does not list it yet, or refused it"
    found = [(p["state"], p["step"], p["why"]) for p in json.loads(capsys.readouterr().out)["partitions"]]
    waits = ("deferred", None, "2 partitions are in flight")
    assert found == [("moving", [1, 3], None), ("deferred", None, due), waits, waits]


def test_a_plan_that_is_made_during_a_move_begins_where_the_move_ends(kraft, tmp_path):
    kraft.controller.tick = lambda: None
    kraft.controller.live.add(4)
    kraft.controller.alter({TPS[0]: (1, 3)})
    path = tmp_path / "plan.json"
    assert main([*PLAN, str(path)]) == 0
    assert load_plan(path).targets == {TPS[0]: (1, 4)}
    stored("batched", DEAD)
    assert main([*PLAN, str(path)]) == 0
    assert {tp: len(target) for tp, target in load_plan(path).targets.items()} == dict.fromkeys(TPS, 2)


def test_a_plan_whose_topic_was_deleted_is_not_done(kraft, moved, capsys):
    kraft.controller.partitions.clear()
    assert main(["reassign", "verify", *HERE, "--plan", moved, "--json"]) == 1
    told = {"complete": False, "missing": [f"{tp}: no longer exists" for tp in TPS]}
    assert json.loads(capsys.readouterr().out) == told


def test_a_move_that_another_command_cancels_is_exit_code_1(kraft, moved, capsys):
    kraft.controller.tick = lambda: None  # nothing is copied

    def cancel(call, _args):
        if call == "alter_reassignments":
            [job] = JobFolder().all()
            JobFolder().steer(job.id, lambda control: replace(control, wish="cancel"))

    kraft.hook = cancel
    assert execute(moved) == 1
    told = capsys.readouterr()
    assert "cancelled: 4 partitions were not moved" in told.err
    assert plan_from_json(told.out) == MOVED


def test_a_cancelled_move_prints_what_is_left_also_where_its_throttle_cannot_be_restored(kraft, moved, capsys):
    kraft.controller.tick = lambda: None

    def cancel_and_die(call, args):
        if call == "alter_reassignments":
            [job] = JobFolder().all()
            JobFolder().steer(job.id, lambda control: replace(control, wish="cancel"))
        if call == "alter_configs" and args[0] == ConfigResource.broker(3) and args[2]:
            raise UnreachableError("alter the configuration of broker 3", "BROKER_NOT_AVAILABLE")

    kraft.hook = cancel_and_die
    assert execute(moved, "--throttle", "1MB/s") == 70
    told = capsys.readouterr()
    assert "broker 3: BROKER_NOT_AVAILABLE" in told.err and "testbed reassign recover" in told.err
    assert plan_from_json(told.out) == MOVED
    assert JobFolder().ids() == []


def test_cancel_prints_the_plan_of_what_is_left_also_when_another_process_cancels(kraft, capsys):
    job, jobs = stored("batched", Owner.this_process()), JobFolder()
    kraft.controller.partitions[TPS[0]].replicas = (1, 3)

    def cancelled():
        wait_for(lambda: jobs.control(job.id).wish, lambda wish: wish == "cancel", 30, 0.01, "the wish")
        jobs.remove(job.id)

    process = threading.Thread(target=cancelled)
    process.start()
    assert main(["reassign", "cancel", *HERE]) == 0
    process.join()
    told = capsys.readouterr()
    assert f"was cancelled by its process, {job.owner.pid}: 3 partitions were not moved" in told.err
    assert set(plan_from_json(told.out).targets) == set(TPS[1:])


@pytest.mark.parametrize("option", ["--reassignment-batch-size", "--replicas", "--leaders", "--per-broker", "--starts"])
def test_a_limit_below_0_names_its_option(kraft, moved, capsys, option):
    with pytest.raises(SystemExit) as error:
        execute(moved, option, "-1")
    assert error.value.code == 64
    assert f"{option}: '-1': must be a whole number; 0 is no limit" in capsys.readouterr().err
    assert kraft.calls == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["cancel", "--partitions", ""], "--partitions: '' is no partition"),
        (["cancel", "--partitions", ","], "--partitions: ',' is no partition"),
        (["list", "--topics", ""], "--topics: '': must be names"),
        (["plan", "--spread", "--topics", ","], "--topics: ',': must be names"),
    ],
)
def test_a_list_of_nothing_is_refused_and_cancels_nothing(kraft, capsys, words, why):
    job = stored("batched", DEAD)
    try:
        code = main(["reassign", *words, *HERE])
    except SystemExit as exit_:
        code = exit_.code
    assert code == 64
    assert why in capsys.readouterr().err
    assert JobFolder().control(job.id).wish == "run"


def test_set_prints_the_throttle_and_the_limits_that_are_now_wanted(kraft, capsys):
    job = stored("incremental", DEAD, BatchLimits(1, 2))
    assert main(["reassign", "set", *HERE, "--throttle", "30MB/s", "--leaders", "1"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("throttle 30MB/s; replicas of a partition at once: 1, partitions in flight: 2, ")
    assert JobFolder().control(job.id) == JobControl(BatchLimits(1, 2, 1), 30_000_000)


def test_a_move_that_ended_before_it_was_cancelled_is_not_called_cancelled(kraft, capsys):
    job, jobs = stored("batched", Owner.this_process()), JobFolder()
    for tp, target in MOVED.targets.items():
        kraft.controller.partitions[tp].replicas = tuple(target)

    def ended():
        wait_for(lambda: jobs.control(job.id).wish, lambda wish: wish == "cancel", 30, 0.01, "the wish")
        jobs.remove(job.id)

    process = threading.Thread(target=ended)
    process.start()
    assert main(["reassign", "cancel", *HERE]) == 0
    process.join()
    told = capsys.readouterr()
    assert told.err == f"reassignment {job.id} has ended: nothing was left to cancel\n"
    assert json.loads(told.out)["partitions"] == []


def test_a_move_that_is_being_cancelled_takes_no_other_change(kraft, capsys):
    job = stored("batched", Owner.this_process())
    JobFolder().steer(job.id, lambda control: replace(control, wish="cancel"))
    for words in (["pause"], ["set", "--leaders", "1"]):
        assert main(["reassign", *words, *HERE]) == 70
        assert f"reassignment {job.id} is being cancelled: nothing else can be changed" in capsys.readouterr().err
    assert main(["reassign", "resume", *HERE]) == 0
    assert capsys.readouterr().out == f"reassignment {job.id} is being cancelled by process {job.owner.pid}\n"
    assert JobFolder().control(job.id) == JobControl(wish="cancel")


def test_execute_says_once_that_the_throttle_was_extended():
    said = []
    notes = ExecutionNotes(said.append)
    for _ in range(2):
        notes("throttle.extended", "throttle", {"partitions": 1, "why": "another client has changed t-0"})
    notes("throttle.in_force", "throttle", {"rate_bytes_per_s": 1000})
    assert said == ["throttle: another client has changed t-0"]
