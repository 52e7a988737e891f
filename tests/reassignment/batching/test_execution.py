import random
from dataclasses import replace

import pytest

from testbed.kafka.errors import KafkaError, ReassignmentError, UnreachableError
from testbed.kafka.types import ConfigResource, ReplicaLog, TopicPartition
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.execution import Execution, ExecutionError
from testbed.reassignment.batching.job import Job, JobControl, JobFolder
from testbed.reassignment.plan import Plan, PlanError
from testbed.throttle.journal import JournalFolder, open_journals
from testbed.throttle.recovery import RestoreError
from testbed.wait import WaitTimeout
from tests.fakes.kraft import Controller, KraftAdmin

RATE = "follower.replication.throttled.rate"


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


class Killed(BaseException):
    """What a process that is killed does next: nothing."""


@pytest.fixture
def folders(tmp_path):
    return JobFolder(tmp_path / "moves"), JournalFolder(tmp_path / "reassign")


def cluster(partitions=10, seed=1):
    rng = random.Random(seed)
    current = {tp(n): tuple(rng.sample(range(1, 7), 3)) for n in range(partitions)}
    plan = Plan({tp(n): tuple(rng.sample(range(1, 7), 3)) for n in range(partitions)})
    return KraftAdmin(Controller.of(current, range(1, 7), seed)), plan


def execution(admin, plan, folders, mode="incremental"):
    job = Job.new(admin.bootstrap, admin.cluster_id, mode, plan)
    return Execution(admin, job, *folders), job


@pytest.mark.parametrize("mode", ["unbatched", "batched", "incremental"])
def test_a_job_is_carried_out_under_its_throttle_and_leaves_nothing(mode, folders):
    admin, plan = cluster()
    run, _ = execution(admin, plan, folders, mode)
    run.begin(JobControl(BatchLimits(1, 3, 2), 1000))
    rates = []
    end = run.run(
        lambda _turn: rates.append(admin.configs[ConfigResource.broker(1)][RATE]), interval_s=0.001, timeout_s=30
    )
    assert not end.cancelled
    assert {t: p.replicas for t, p in admin.controller.partitions.items()} == plan.targets
    assert set(rates) == {"1000"}
    assert admin.configs == {}
    assert folders[0].ids() == []
    assert not open_journals(folders[1])


def test_every_replica_that_may_come_to_lead_is_listed_on_the_leaders_side(folders):
    admin = KraftAdmin(Controller.of({tp(0): (1, 2)}, range(1, 7)))
    run, _ = execution(admin, Plan({tp(0): (4, 5)}), folders)
    run.begin(JobControl(BatchLimits(1, 1, 1), 1000))
    lists = admin.configs[ConfigResource.topic("t")]
    assert lists["leader.replication.throttled.replicas"] == "0:1,0:2,0:4,0:5"
    assert lists["follower.replication.throttled.replicas"] == "0:4,0:5"
    run.run(interval_s=0.001, timeout_s=30)


def dead(job_folder, journal_folder, job):
    """Give job and journals to a process that is no more."""
    import json

    for path in [job_folder.path / job.id / "job.json", *journal_folder.path.glob("*.json")]:
        document = json.loads(path.read_text())
        document["owner"] = {"pid": 1, "started_ticks": 1, "boot_id": "another"}
        path.write_text(json.dumps(document))


def test_killed_at_any_call_and_resumed_it_ends_the_same_and_the_throttle_never_left(folders):
    rng = random.Random(20)
    for number in range(20):
        admin, plan = cluster(seed=number)
        run, job = execution(admin, plan, folders)
        run.begin(JobControl(BatchLimits(1, 3, 2), 1000))
        at = len(admin.calls) + rng.randint(1, 25)

        def kill(_call, _args, admin=admin, at=at):
            if len(admin.calls) >= at:
                raise Killed

        admin.hook = kill
        with pytest.raises(Killed):
            run.run(interval_s=0.001, timeout_s=30)
        admin.hook = lambda _call, _args: None
        assert admin.configs[ConfigResource.broker(1)][RATE] == "1000"
        dead(*folders, job)
        again = Execution(admin, folders[0].read(job.id), *folders)
        again.resume()
        assert admin.configs[ConfigResource.broker(1)][RATE] == "1000"
        again.run(interval_s=0.001, timeout_s=30)
        assert {t: p.replicas for t, p in admin.controller.partitions.items()} == plan.targets
        assert len(set(admin.controller.copied)) == len(admin.controller.copied)
        assert admin.configs == {}
        assert folders[0].ids() == []


def test_a_resumed_move_copies_nothing_twice_where_a_broker_is_behind_the_controller(folders):
    admin, only = KraftAdmin(Controller.of({tp(0): (1, 2, 3)}, range(1, 6))), tp(0)
    run, job = execution(admin, Plan({only: (1, 4, 5)}), folders, "batched")
    run.begin(JobControl(BatchLimits(1)))
    admin.controller.rng.random = lambda: 1.0  # nothing comes into sync yet

    def kill(_turn):
        if admin.controller.seen().listed:
            raise Killed

    with pytest.raises(Killed):
        run.run(kill, interval_s=0.001, timeout_s=10)
    dead(*folders, job)
    partitions, last, rng = admin.partitions, {}, random.Random(1)

    def go_on(_turn):
        admin.controller.rng = rng

    def behind(topics):
        """The partitions; when a step has ended, once more as they were within it."""
        found = partitions(topics)
        if admin.controller.seen().listed:
            last.update(found)
            return found
        return {**found, **{each: last.pop(each) for each in list(last)}}

    admin.partitions = behind
    again = Execution(admin, folders[0].read(job.id), *folders)
    again.resume()
    again.run(go_on, interval_s=0.001, timeout_s=10)
    assert admin.controller.partitions[only].replicas == (1, 4, 5)
    assert admin.controller.copied == [(only, 4), (only, 5)]


def test_steered_while_it_runs(folders):
    admin, plan = cluster(20)
    run, job = execution(admin, plan, folders)
    run.begin(JobControl(BatchLimits(1, 1, 1), 1000))
    seen = []

    def steer(turn):
        moving = sum(s.state == "moving" for s in turn.partitions)
        seen.append((moving, admin.configs[ConfigResource.broker(1)][RATE]))
        if len(seen) == 5:
            folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1, 6, 6), 2000))

    run.run(steer, interval_s=0.001, timeout_s=30)
    assert max(moving for moving, _ in seen[:5]) == 1
    assert max(moving for moving, _ in seen[6:]) > 1
    assert {rate for _, rate in seen[6:]} == {"2000"}
    assert admin.configs == {}


def test_paused_it_starts_nothing_until_it_may_go_on(folders):
    admin, plan = cluster()
    run, job = execution(admin, plan, folders)
    run.begin(JobControl(BatchLimits(), None, "pause"))
    with pytest.raises(WaitTimeout):
        run.run(interval_s=0.001, timeout_s=0.05)
    assert not any(call == "alter_reassignments" for call, _ in admin.calls)
    folders[0].steer(job.id, lambda _: JobControl(BatchLimits()))
    run.run(interval_s=0.001, timeout_s=30)


def test_cancelled_it_says_what_is_left_and_takes_the_throttle_away(folders):
    admin, plan = cluster(20)
    run, job = execution(admin, plan, folders)
    run.begin(JobControl(BatchLimits(1, 3, 2), 1000))

    def cancel(turn):
        if sum(s.state == "done" for s in turn.partitions) >= 3:
            folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1, 3, 2), 1000, "cancel"))

    end = run.run(cancel, interval_s=0.001, timeout_s=30)
    there = {t: p.replicas for t, p in admin.controller.partitions.items()}
    assert end.cancelled
    assert set(end.left.targets) == {t for t, target in plan.targets.items() if there[t] != target}
    assert not admin.controller.seen().listed
    assert admin.configs == {}


def test_what_cannot_be_meant_is_refused_and_nothing_is_changed(folders):
    admin, plan = cluster()
    admin.controller.min_insync = 4
    run, _ = execution(admin, plan, folders)
    with pytest.raises(PlanError, match=r"min\.insync\.replicas, 4"):
        run.begin(JobControl())
    admin.controller.min_insync = 1
    admin.controller.alter({tp(0): (1, 2, 3), tp(1): (4, 5, 6)})
    if not admin.controller.seen().listed:
        pytest.fail("the cluster was to be busy")
    run, _ = execution(admin, plan, folders)
    with pytest.raises(ExecutionError, match="--additional"):
        run.begin(JobControl())
    with pytest.raises(ExecutionError, match="leave --throttle out"):
        run.begin(JobControl(throttle_bytes_per_s=5), additional=True)
    assert folders[0].ids() == []
    assert admin.configs == {}


def test_a_plan_that_chooses_log_dirs_is_refused(folders):
    admin, _ = cluster()
    run, _ = execution(admin, Plan({tp(0): (4, 5)}, {tp(0): ("/disk1", "any")}), folders)
    with pytest.raises(PlanError, match="log_dirs other than 'any' are not supported: t-0"):
        run.begin(JobControl(throttle_bytes_per_s=1000))
    assert (folders[0].ids(), admin.configs) == ([], {})


def test_a_job_whose_process_runs_is_not_taken_over(folders):
    admin, plan = cluster()
    run, job = execution(admin, plan, folders)
    run.begin(JobControl())
    import json
    import os
    import subprocess
    import sys

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        from testbed.owner import _boot_id, _started_ticks

        path = folders[0].path / job.id / "job.json"
        document = json.loads(path.read_text())
        document["owner"] = {"pid": other.pid, "started_ticks": _started_ticks(other.pid), "boot_id": _boot_id()}
        path.write_text(json.dumps(document))
        with pytest.raises(ExecutionError, match=f"process {other.pid} executes reassignment .*; wait for it"):
            Execution(admin, folders[0].read(job.id), *folders).resume()
        assert other.stdin is not None
        other.stdin.write(os.linesep.encode())


def test_a_dead_old_replica_does_not_hold_a_step_up(folders):
    for mode in ("batched", "incremental"):
        admin = KraftAdmin(Controller.of({tp(0): (2, 1, 3), tp(1): (1, 3)}, {1, 3, 4}))
        admin.controller.min_insync = 2
        run, _ = execution(admin, Plan({tp(0): (4, 1, 3), tp(1): (1, 4)}), folders, mode)
        run.begin(JobControl(BatchLimits(1)))
        run.run(interval_s=0.001, timeout_s=10)
        assert admin.controller.partitions[tp(0)].replicas == (4, 1, 3)


def test_a_broker_that_dies_within_a_step_is_left_out_of_it(folders):
    admin = KraftAdmin(Controller.of({tp(0): (2, 1, 3)}, {1, 2, 3, 4}))
    admin.controller.rng.random = lambda: 1.0  # nothing comes into sync yet
    run, _ = execution(admin, Plan({tp(0): (4, 1, 3)}), folders)
    run.begin(JobControl(BatchLimits(1)))

    def die(turn):
        if turn.partitions[0].state == "moving" and 2 in admin.controller.live:
            admin.controller.live.discard(2)
            admin.controller.partitions[tp(0)].isr.discard(2)
            admin.controller.partitions[tp(0)].leader = 1
            admin.controller.rng = random.Random(1)

    run.run(die, interval_s=0.001, timeout_s=10)
    assert admin.controller.partitions[tp(0)].replicas == (4, 1, 3)


def test_what_the_controller_refuses_is_told(folders):
    admin = KraftAdmin(Controller.of({tp(0): (1, 2), tp(1): (1, 2)}, {1, 2, 3}))
    admin.refused = {tp(0): "INVALID_REPLICA_ASSIGNMENT"}
    run, _ = execution(admin, Plan({tp(0): (1, 3), tp(1): (1, 3)}), folders)
    run.begin(JobControl())
    told = []
    with pytest.raises(WaitTimeout):
        run.run(
            lambda turn: told.append([s.why for s in turn.partitions if s.tp == tp(0)]), interval_s=0.001, timeout_s=0.3
        )
    assert admin.controller.partitions[tp(1)].replicas == (1, 3)
    assert told[-1] == ["the controller refused [1, 3]: INVALID_REPLICA_ASSIGNMENT"]


@pytest.mark.parametrize("refused", [(3, 1), (1, 3)], ids=["moves the leader", "moves a follower"])
def test_a_step_that_the_controller_refuses_takes_the_place_of_no_other(refused, folders):
    admin = KraftAdmin(Controller.of({tp(n): (1, 2) for n in range(4)}, {1, 2, 3}))
    admin.refused = dict.fromkeys((tp(0), tp(1)), "INVALID_REPLICA_ASSIGNMENT")
    plan = Plan({tp(0): refused, tp(1): refused, tp(2): (1, 3), tp(3): (1, 3)})
    run, _ = execution(admin, plan, folders, "batched")
    run.begin(JobControl(BatchLimits(1, 1, 1)))

    def arrived(turn):
        states = {status.tp: status.state for status in turn.partitions}
        if states[tp(2)] == states[tp(3)] == "done":
            assert states[tp(0)] == states[tp(1)] == "waiting"
            raise Killed

    with pytest.raises(Killed):
        run.run(arrived, interval_s=0.001, timeout_s=10)


def test_a_topic_deleted_meanwhile_is_no_obstacle(folders):
    other = TopicPartition("u", 0)
    admin = KraftAdmin(Controller.of({tp(0): (1, 2), other: (1, 2)}, {1, 2, 3}))
    run, _ = execution(admin, Plan({tp(0): (1, 3), other: (1, 3)}), folders)
    run.begin(JobControl())

    def delete(_turn):
        admin.controller.partitions.pop(other, None)

    last = run.follow(delete, interval_s=0.001, timeout_s=10)
    assert {s.tp: s.state for s in last.partitions}[other] == "gone"


def test_a_topic_made_again_meanwhile_is_another_one_and_not_moved(folders):
    other = TopicPartition("u", 0)
    admin = KraftAdmin(Controller.of({tp(0): (1, 2), other: (1, 2)}, {1, 2, 3}))
    admin.controller.topic_ids = {"t": "one", "u": "two"}
    run, job = execution(admin, Plan({tp(0): (1, 3), other: (1, 3)}), folders, "batched")
    run.begin(JobControl(BatchLimits(1, 1, None)))
    assert folders[0].read(job.id).topic_ids == {"t": "one", "u": "two"}

    def make_again(_turn):
        admin.controller.topic_ids["u"] = "three"

    last = run.follow(make_again, interval_s=0.001, timeout_s=10)
    assert {s.tp: s.state for s in last.partitions} == {tp(0): "done", other: "gone"}
    assert admin.controller.partitions[other].replicas == (1, 2)


def test_a_throttle_that_does_not_come_into_force_leaves_neither_job_nor_throttle(folders, monkeypatch):
    from testbed.reassignment.batching import execution as module
    from testbed.throttle.configs import ThrottleError

    monkeypatch.setattr(module, "_IN_FORCE_S", 0.05)
    admin, plan = cluster()
    admin.deaf_brokers = frozenset({3})
    run, _ = execution(admin, plan, folders)
    with pytest.raises(ThrottleError):
        run.begin(JobControl(throttle_bytes_per_s=1000))
    assert folders[0].ids() == []
    assert admin.configs == {}


def test_a_second_job_of_a_cluster_is_refused(folders):
    admin, plan = cluster()
    run, job = execution(admin, plan, folders)
    run.begin(JobControl())
    other, _ = execution(admin, plan, folders)
    with pytest.raises(ExecutionError, match=job.id):
        other.begin(JobControl(), additional=True)


@pytest.mark.parametrize("rate", [1000, 5000])
def test_a_rate_taken_away_or_steered_while_nobody_was_there_is_in_force_after_the_resume(folders, rate):
    admin, plan = cluster()
    run, job = execution(admin, plan, folders)
    run.begin(JobControl(BatchLimits(1, 3, 2), 1000))
    dead(*folders, job)
    if rate != 1000:
        folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1, 3, 2), rate))
    admin.configs[ConfigResource.broker(2)].pop(RATE)
    again = Execution(admin, folders[0].read(job.id), *folders)
    again.resume()
    assert {admin.configs[ConfigResource.broker(b)][RATE] for b in range(1, 7)} == {str(rate)}
    again.run(interval_s=0.001, timeout_s=30)
    assert admin.configs == {}


def test_the_throttle_s_journal_names_the_file_that_says_how_to_connect(folders):
    admin, plan = cluster()
    job = Job.new(admin.bootstrap, admin.cluster_id, "incremental", plan, "/etc/client.properties")
    run = Execution(admin, job, *folders)
    run.begin(JobControl(BatchLimits(), 1000))
    [journal] = open_journals(folders[1])
    assert journal.command_config == "/etc/client.properties"
    run.run(interval_s=0.001, timeout_s=30)


def test_a_broker_that_was_dead_when_the_throttle_was_set_gets_its_rate_when_it_is_back(folders):
    admin = KraftAdmin(Controller.of({tp(n): (1, 2, 3) for n in range(6)}, range(1, 7)))
    admin.controller.live.discard(3)
    run, _ = execution(admin, Plan({tp(n): (1, 2, 4) for n in range(6)}), folders)
    run.begin(JobControl(BatchLimits(1, 1, 1), 1000))
    assert ConfigResource.broker(3) not in admin.configs
    rates = []

    def on_turn(_turn):
        rates.append(admin.configs.get(ConfigResource.broker(3), {}).get(RATE))
        if len(rates) == 2:
            admin.controller.live.add(3)

    run.run(on_turn, interval_s=0.001, timeout_s=30)
    assert rates[:3] == [None, None, "1000"]
    assert admin.configs == {}


def test_a_partition_that_another_client_sends_back_is_moved_again_and_said(folders, monkeypatch):
    monkeypatch.setattr("testbed.reassignment.batching.execution._BEHIND_S", 0.05)
    admin = KraftAdmin(Controller.of({tp(0): (1, 2), tp(1): (1, 2)}, range(1, 7)))
    plan = Plan({tp(0): (4, 5), tp(1): (4, 5)})
    notes, sent_back = [], []
    job = Job.new(admin.bootstrap, admin.cluster_id, "batched", plan)
    run = Execution(admin, job, *folders, lambda _kind, name, detail: notes.append((name, detail.get("why", ""))))
    run.begin(JobControl(BatchLimits(1, 1, 1), None))

    def send_back(turn):
        done = [status.tp for status in turn.partitions if status.state == "done"]
        if len(done) == 1 and not sent_back:
            sent_back.extend(done)
            admin.alter_reassignments({done[0]: (1, 2)})

    run.run(send_back, interval_s=0.001, timeout_s=10)
    assert sent_back
    [why, *_more] = [why for name, why in notes if name == f"another client changed {sent_back[0]}"]
    assert why.startswith("its replicas are [")
    assert {t: p.replicas for t, p in admin.controller.partitions.items()} == plan.targets


def test_metadata_that_misses_a_topic_for_one_turn_ends_nothing(folders):
    """A broker behind the controller may not know a topic yet; the topic is not deleted for that."""
    admin, plan = cluster(20)
    run, _ = execution(admin, plan, folders, "batched")
    run.begin(JobControl(BatchLimits(1, 3, 2), 1000))
    behind = {"asked": 0}

    def stale(call, _args):
        if call == "partitions":
            behind["asked"] += 1
            if behind["asked"] == 4:
                admin.topics = lambda: ()
                raise KafkaError("describe topics", "UNKNOWN_TOPIC_OR_PARTITION")
            if behind["asked"] == 6:  # after the retry, which asked for no topic
                del admin.topics

    admin.hook = stale
    end = run.run(interval_s=0.001, timeout_s=30)
    assert not end.cancelled
    assert {t: p.replicas for t, p in admin.controller.partitions.items()} == plan.targets
    assert behind["asked"] > 6


def test_a_rate_that_a_dead_broker_cannot_take_stops_neither_the_move_nor_its_cancel(folders):
    admin = KraftAdmin(Controller.of({tp(n): (1, 2, 3) for n in range(8)}, range(1, 7)))
    run, job = execution(admin, Plan({tp(n): (1, 2, 4) for n in range(8)}), folders)
    run.begin(JobControl(BatchLimits(1, 1, 1), 1000))
    admin.controller.live.discard(6)
    turns = []

    def steer(_turn):
        turns.append(admin.configs[ConfigResource.broker(1)][RATE])
        if len(turns) == 2:
            folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1, 1, 1), 5000))
        if len(turns) == 5:
            folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1, 1, 1), 5000, wish="cancel"))

    end = run.run(steer, interval_s=0.001, timeout_s=30)
    assert (end.cancelled, turns[0], turns[-1]) == (True, "1000", "5000")
    assert run.throttle.left_out == (6,)


def test_a_rate_that_failed_and_is_taken_back_is_in_force_again(folders):
    admin, plan = cluster(20)
    run, job = execution(admin, plan, folders)
    run.begin(JobControl(BatchLimits(1, 1, 1), 1000))
    seen, refuse = [], {"left": 0}

    def silent(call, args):
        if call == "alter_configs" and args[0] == ConfigResource.broker(4) and refuse["left"]:
            refuse["left"] -= 1
            raise UnreachableError("alter configs", "REQUEST_TIMED_OUT")

    def steer(_turn):
        seen.append([admin.configs[ConfigResource.broker(b)][RATE] for b in range(1, 7)])
        if len(seen) == 3:
            refuse["left"] = 1
            folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1, 1, 1), 5000))
        if len(seen) == 4:
            folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1, 1, 1), 1000))

    admin.hook = silent
    run.run(steer, interval_s=0.001, timeout_s=30)
    assert "5000" in seen[3]
    assert set(seen[4]) == set(seen[-1]) == {"1000"}
    assert admin.configs == {}


def test_a_resume_that_failed_after_it_took_the_throttle_leaves_it_to_the_next_one(folders):
    admin, plan = cluster()
    run, job = execution(admin, plan, folders)
    run.begin(JobControl(BatchLimits(1, 3, 2), 1000))
    dead(*folders, job)
    failing = Execution(admin, folders[0].read(job.id), *folders)
    failing.throttle.wait_in_force = lambda *_args, **_more: (_ for _ in ()).throw(Killed())
    with pytest.raises(Killed):
        failing.resume()
    dead(*folders, job)
    again = Execution(admin, folders[0].read(job.id), *folders)
    again.resume()
    assert len(open_journals(folders[1])) == 1
    again.run(interval_s=0.001, timeout_s=30)
    assert admin.configs == {}


def test_what_a_user_steers_while_a_resume_waits_for_the_throttle_is_not_lost(folders):
    admin, plan = cluster()
    run, job = execution(admin, plan, folders)
    run.begin(JobControl(BatchLimits(1, 3, 2), 1000))
    dead(*folders, job)
    again = Execution(admin, folders[0].read(job.id), *folders)
    steered, wait = JobControl(BatchLimits(1, 1, 1), 5000), again.throttle.wait_in_force

    def steer(*args, **more):
        folders[0].steer(job.id, lambda _: steered)
        wait(*args, **more)

    again.throttle.wait_in_force = steer
    again.resume()
    assert folders[0].control(job.id) == steered
    rates = []
    again.run(lambda _turn: rates.append(admin.configs[ConfigResource.broker(1)][RATE]), interval_s=0.001, timeout_s=30)
    assert set(rates) == {"5000"}
    assert admin.configs == {}


def test_a_dead_job_is_cancelled_also_where_a_broker_does_not_apply_its_throttle(folders, monkeypatch):
    monkeypatch.setattr("testbed.reassignment.batching.execution._IN_FORCE_S", 0.05)
    admin, plan = cluster()
    run, job = execution(admin, plan, folders)
    control = JobControl(BatchLimits(1, 3, 2), 1000)
    run.begin(control)
    dead(*folders, job)
    folders[0].steer(job.id, lambda now: replace(now, wish="cancel"))
    admin.deaf_brokers = frozenset({3})
    again = Execution(admin, folders[0].read(job.id), *folders)
    again.resume()
    assert again.run(interval_s=0.001, timeout_s=30).cancelled
    assert admin.configs == {}
    assert (folders[0].ids(), open_journals(folders[1])) == ([], [])


def test_a_job_has_ended_also_where_a_broker_does_not_take_its_originals(folders):
    admin, plan = cluster()
    run, _ = execution(admin, plan, folders)
    run.begin(JobControl(BatchLimits(1, 3, 2), 1000))

    def dead_broker(call, args):
        if call == "alter_configs" and args[0] == ConfigResource.broker(6) and args[2]:
            raise UnreachableError("alter configs", "BROKER_NOT_AVAILABLE")

    admin.hook = dead_broker
    with pytest.raises(RestoreError, match=r"BROKER_NOT_AVAILABLE\n.*`testbed reassign recover` restores them"):
        run.run(interval_s=0.001, timeout_s=30)
    assert {t: p.replicas for t, p in admin.controller.partitions.items()} == plan.targets
    assert list(admin.configs) == [ConfigResource.broker(6)]
    assert (folders[0].ids(), len(open_journals(folders[1]))) == ([], 1)


def test_an_old_replica_that_its_broker_does_not_remove_is_named(folders, monkeypatch):
    monkeypatch.setattr("testbed.reassignment.batching.execution._REMOVED_S", 0.0)
    admin = KraftAdmin(Controller.of({tp(0): (1, 2)}, {1, 2, 3}))
    notes, looks, log_dirs = [], [], admin.log_dirs
    job = Job.new(admin.bootstrap, admin.cluster_id, "batched", Plan({tp(0): (1, 3)}))
    run = Execution(admin, job, *folders, lambda kind, name, detail: notes.append((kind, name, detail)))

    def left(brokers, topics=None):
        found = log_dirs(brokers, topics)
        if 2 in brokers and len(looks) < 3:
            looks.append(found)
            found[2][tp(0)] = ReplicaLog(1, False)
        return found

    admin.log_dirs = left
    run.begin(JobControl(BatchLimits(1, 1)))
    run.run(interval_s=0.001, timeout_s=10)
    assert ("note", "not removed", {"why": "t-0: the old replica on broker 2 is still there"}) in notes
    assert len(looks) == 3


def test_a_deleted_topic_does_not_keep_a_job_from_its_resume_in_the_same_process(folders):
    other = TopicPartition("u", 0)
    admin = KraftAdmin(Controller.of({tp(0): (1, 2), other: (1, 2)}, range(1, 7)))
    run, job = execution(admin, Plan({tp(0): (4, 5), other: (4, 5)}), folders)
    run.begin(JobControl(BatchLimits(1, 1, 1), 1000))
    del admin.controller.partitions[other], admin.assignment[other]
    admin.configs.pop(ConfigResource.topic("u"))
    again = Execution(admin, folders[0].read(job.id), *folders)
    again.resume()
    assert not again.run(interval_s=0.001, timeout_s=30).cancelled
    assert admin.controller.partitions[tp(0)].replicas == (4, 5)
    assert {key: value for key, value in admin.configs.items() if value} == {}


@pytest.mark.parametrize("name", ["NO_REASSIGNMENT_IN_PROGRESS", "UNKNOWN_TOPIC_OR_PARTITION"])
def test_a_step_that_ends_while_it_is_cancelled_is_no_failure(folders, name):
    admin, plan = cluster(60)
    run, job = execution(admin, plan, folders)
    run.begin(JobControl(BatchLimits(1, 60, 60), 1000))
    asked = []

    def ended(call, args):
        if call == "alter_reassignments" and None in args[0].values():
            asked.append(args[0])
            admin.controller.cancel(args[0])
            first = next(iter(args[0]))
            raise ReassignmentError("cancel", {first: name}, len(args[0]))

    def steer(_turn):
        folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1, 60, 60), 1000, wish="cancel"))

    admin.hook = ended
    assert run.run(steer, interval_s=0.001, timeout_s=30).cancelled
    assert asked
    assert admin.configs == {}


@pytest.mark.parametrize("mode", ["unbatched", "incremental"])
def test_a_cancel_leaves_the_reassignment_of_another_client_as_it_is(mode, folders):
    admin = KraftAdmin(Controller.of({tp(0): (1, 2), tp(1): (1, 2)}, range(1, 7)))
    admin.controller.tick = lambda: None  # nothing is copied
    admin.controller.alter({tp(0): (1, 6)})
    plan, notes = Plan({tp(0): (2, 1), tp(1): (1, 3)}), []
    job = Job.new(admin.bootstrap, admin.cluster_id, mode, plan)
    run = Execution(admin, job, *folders, lambda kind, name, detail: notes.append((kind, name, detail.get("why", ""))))
    run.begin(JobControl(BatchLimits(1)), additional=True)

    def cancel(_turn):
        if tp(1) in admin.controller.seen().listed:
            folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1), wish="cancel"))

    end = run.run(cancel, interval_s=0.001, timeout_s=10)
    assert (end.cancelled, end.left) == (True, plan)
    assert admin.controller.partitions[tp(0)].adding == (6,)
    assert list(admin.controller.seen().listed) == [tp(0)]
    [why] = [why for kind, name, why in notes if (kind, name) == ("note", "not cancelled")]
    assert "another client reassigns t-0" in why


def keeping(admin, broker, times=10**6):
    """Let a broker refuse so many times to give up its rate; return the refusals."""
    refused = []

    def hook(call, args):
        if call == "alter_configs" and args[0] == ConfigResource.broker(broker) and args[2] and len(refused) < times:
            refused.append(call)
            raise UnreachableError("alter configs", "BROKER_NOT_AVAILABLE")

    admin.hook = hook
    return refused


@pytest.mark.parametrize("rate", [1000, 5000], ids=["the same rate", "another rate"])
def test_a_throttle_that_was_removed_in_part_is_whole_again_with_the_next_rate(folders, monkeypatch, rate):
    monkeypatch.setattr("testbed.reassignment.batching.execution._IN_FORCE_S", 0.05)
    admin = KraftAdmin(Controller.of({tp(n): (1, 2, 3) for n in range(8)}, range(1, 7)))
    run, job = execution(admin, Plan({tp(n): (1, 2, 4) for n in range(8)}), folders)
    run.begin(JobControl(BatchLimits(1, 1, 1), 1000))
    keeping(admin, 6)
    seen = []

    def steer(_turn):
        rates, lists = (admin.configs.get(each, {}) for each in (ConfigResource.broker(1), ConfigResource.topic("t")))
        seen.append((rates.get(RATE), len(lists)))
        if len(seen) == 2:
            folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1, 1, 1), None))
        if len(seen) == 4:
            folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1, 1, 1), rate))
        if len(seen) == 6:
            admin.hook = lambda _call, _args: None

    run.run(steer, interval_s=0.001, timeout_s=30)
    assert seen[1:6] == [("1000", 2), (None, 0), (None, 0), (str(rate), 2), (str(rate), 2)]
    assert admin.configs == {}


def test_a_resume_without_a_throttle_goes_on_where_a_broker_keeps_its_rate(folders):
    admin, plan = cluster()
    run, job = execution(admin, plan, folders)
    run.begin(JobControl(BatchLimits(1, 3, 2), 1000))
    dead(*folders, job)
    folders[0].steer(job.id, lambda _: JobControl(BatchLimits(1, 3, 2), None))
    refused = keeping(admin, 6, times=3)
    again = Execution(admin, folders[0].read(job.id), *folders)
    again.resume()
    assert not again.run(interval_s=0.001, timeout_s=30).cancelled
    assert len(refused) == 3
    assert {t: p.replicas for t, p in admin.controller.partitions.items()} == plan.targets
    assert admin.configs == {}
