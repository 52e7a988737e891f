"""A move in steps whose driver is killed by SIGKILL again and again and resumed, or steered: seen from outside."""

import os
import random
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from testbed.experiments.batch_monitor import BatchAccount
from testbed.experiments.kip455_trace import readable
from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from testbed.kafka.types import PartitionState, Reassignment, TopicPartition
from testbed.probes.recorder import now_us
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.job import JobFolder
from testbed.reassignment.metadata_log import read_history
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from testbed.throttle.journal import JournalFolder
from testbed.wait import wait_for
from tests.containers.conftest import ROOT, cli

pytestmark = pytest.mark.containers
SEED = int(os.environ.get("TESTBED_KILL_SEED", "435"))
MB = 10**6
BROKERS = (1, 2, 3)
POINTS_S = (0.2, 2.0)
"""When a driver is killed, from its start: before it has connected, while it takes over, in the midst of its turns."""
ENDS_S = 90.0


class Onlooker(threading.Thread):
    """A reader of the controller's list, the partitions and every broker's throttle, until `stop`."""

    def __init__(self, testbed, plan, limits, rates):
        super().__init__(daemon=True)
        self.testbed, self.plan, self.rates = testbed, plan, set(rates)
        self.watch, self._limits = BatchAccount(plan, "batched", limits, {}), limits
        self.wrong, self.judged, self.error = [], 0, None
        self._stop_it = threading.Event()

    def run(self):
        try:
            with self.testbed.admin() as admin:
                while not self._stop_it.is_set():
                    self._look(admin)
                self._look(admin)  # the end: the look before may have begun earlier
        except KafkaError as error:  # `stop` raises it in the test; pytest reports any other error
            self.error = error

    def expect(self, limits, rates):
        """Expect other limits from here on, and one of these rates."""
        self.rates |= set(rates)
        self.watch = BatchAccount(self.plan, "batched", limits, {})

    def stop(self):
        self._stop_it.set()
        self.join(30)
        assert not self.is_alive()
        assert self.error is None, self.error
        assert self.judged, "the throttle was never read while something moved"
        assert self.wrong == []

    def _look(self, admin):
        listed = admin.reassignments(self.plan.topics())
        self.watch.look(now_us(), listed, admin.partitions(self.plan.topics()))
        if not listed:
            return
        found = [self._throttle(admin, listed, broker) for broker in BROKERS]
        # A step that ended meanwhile may have been the last one: then nothing needs to be held back any more.
        if admin.reassignments(self.plan.topics()):
            self.judged += 1
            self.wrong += [each for each in found if each]

    def _throttle(self, admin, listed, broker):
        """Return what is wrong with a throttle, as a broker reports it; None if nothing is."""
        configs = admin.broker_configs(broker, (LEADER_RATE, FOLLOWER_RATE))
        rates = {configs.in_force(LEADER_RATE), configs.in_force(FOLLOWER_RATE)}
        [topic] = self.plan.topics()
        lists = admin.topics_configs([topic], (LEADER_REPLICAS, FOLLOWER_REPLICAS), broker).get(topic, {})
        held = {key: set((lists.get(key) or "").split(",")) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)}
        for tp, step in listed.items():
            sends = {f"{tp.partition}:{replica}" for replica in set(step.replicas) - set(step.adding)}
            takes = {f"{tp.partition}:{replica}" for replica in step.adding}
            if not (sends <= held[LEADER_REPLICAS] and takes <= held[FOLLOWER_REPLICAS]):
                return f"broker {broker}: {tp} is moved by {step}, and listed are {held}"
        return None if rates <= {str(rate) for rate in self.rates} else f"broker {broker}: {rates}, not {self.rates}"


@contextmanager
def filled(testbed, topic, partitions, bytes_each):
    """Create a topic on broker 1 alone, with so many bytes in each partition; delete it afterwards."""
    with testbed.admin() as admin:
        admin.create_topic(topic, {number: [1] for number in range(partitions)})
        # By the id the driver recognizes a topic that was created again.
        assert all(state.topic_id for state in admin.partitions([topic]).values())
        producer = Producer({"bootstrap.servers": ",".join(testbed.bootstrap), "acks": "all", "linger.ms": 20})
        for number in range(partitions * bytes_each // 1000):
            producer.produce(topic, bytes(1000), partition=number % partitions)
            producer.poll(0)
        assert producer.flush(30) == 0
        try:
            yield admin
        finally:
            cli("reassign", "cancel", "--bootstrap", ",".join(testbed.bootstrap), "--all")
            cli("reassign", "recover")
            admin.delete_topic(topic)
            wait_for(lambda: _exists(admin, topic), lambda there: not there, 20, 0.2, "the topic to be gone")


def _exists(admin, topic):
    try:
        return bool(admin.partitions([topic]))
    except KafkaError as error:
        if error.name != UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return False


def driving(testbed, *words):
    command = [sys.executable, "-m", "testbed.cli.main", "reassign", words[0], "--bootstrap"]
    command += [",".join(testbed.bootstrap), *words[1:], "--reassignment-poll-interval-ms", "200"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def logged(history, plan, limits, until_us=2**63):
    """Return the summary of each state of the plan's partitions in the metadata log before `until_us`.

    A poll may miss a step, or that two were in flight at once. The log has each state, however short.
    """
    # A topic of this name may have existed before.
    begins = max((removal.offset for removal in history.removals if removal.tp in plan.targets), default=-1)
    account, listed, states = BatchAccount(plan, "incremental", limits, {}), {}, {}
    for state in history.changes:
        if state.tp not in plan.targets or state.offset <= begins or state.ts_us >= until_us:
            continue
        states[state.tp] = PartitionState(state.tp, state.leader, state.leader_epoch, state.replicas, state.isr)
        listed.pop(state.tp, None)
        if state.adding or state.removing:
            listed[state.tp] = Reassignment(state.replicas, state.adding, state.removing)
        account.look(state.ts_us, listed, states)
    return account.summary()


def nothing_left(admin, topic):
    assert JobFolder().ids() == []
    assert JournalFolder().ids() == []
    for broker in BROKERS:
        configs = admin.broker_configs(broker, (LEADER_RATE, FOLLOWER_RATE))
        assert (configs.in_force(LEADER_RATE), configs.in_force(FOLLOWER_RATE)) == (None, None)
    assert not any(admin.topics_configs([topic], (LEADER_REPLICAS, FOLLOWER_REPLICAS), 1).get(topic, {}).values())


def arrived(admin, plan):
    states = admin.partitions(plan.topics())
    return {tp: (states[tp].replicas, states[tp].leader) for tp in plan.targets} == {
        tp: (target, target[0]) for tp, target in plan.targets.items()
    }


@pytest.mark.parametrize(
    ("kills", "partitions", "rate"),
    [(2, 7, 2 * MB), pytest.param(20, 18, MB * 3 // 4, marks=pytest.mark.nightly)],
    ids=["2", "20"],
)
def test_a_driver_killed_at_any_point_is_resumed_and_nothing_is_moved_twice(three, tmp_path, kills, partitions, rate):
    topic, limits = "killed", BatchLimits(1, 3, 2)
    plan = Plan({TopicPartition(topic, n): (2, 3) for n in range(partitions)})
    (tmp_path / "plan.json").write_text(plan.to_json())
    steps = ("--replicas", "1", "--reassignment-batch-size", "3", "--leaders", "2")
    words = ("execute", "--plan", str(tmp_path / "plan.json"), "--throttle", f"{rate}B/s", *steps)
    chosen = random.Random(f"{SEED} {kills}")
    with filled(three, topic, partitions, MB) as admin:
        onlooker = Onlooker(three, plan, limits, [rate])
        onlooker.start()
        killed = []
        for _ in range(kills):
            driver = driving(three, *(("resume",) if JobFolder().ids() else words))
            at_s = chosen.uniform(*POINTS_S)
            try:
                driver.wait(at_s)
            except subprocess.TimeoutExpired:
                driver.kill()
            _out, told = driver.communicate()
            assert driver.returncode == -9, f"killed after {killed} s only; then: {told}"
            killed.append(round(at_s, 2))
        driver = driving(three, *(("resume",) if JobFolder().ids() else words))
        _out, told = driver.communicate(timeout=ENDS_S)
        print(f"killed after {killed} s; {told}")
        assert driver.returncode == 0, told
        wait_for(lambda: arrived(admin, plan), bool, 10, 0.2, "every partition to be seen at its target")
        onlooker.stop()
        nothing_left(admin, topic)
        seen = onlooker.watch.summary()
        print(seen, onlooker.judged)
        assert (seen.astray, seen.again, seen.added_over) == ((), (), ())
        assert 1 <= seen.most_in_flight <= limits.partitions
        assert seen.most_leaders <= limits.leaders


def test_limits_and_throttle_changed_while_it_moves_hold_from_the_next_step_on(three, tmp_path):
    topic, low, high = "steered", MB, 4 * MB
    grown = {TopicPartition(topic, n): (1, 2, 3) for n in range(6)}
    moved = {TopicPartition(topic, n): (2, 1) for n in range(6, 18)}
    plan = Plan(grown | moved)
    (tmp_path / "plan.json").write_text(plan.to_json())
    narrow, wide = BatchLimits(1, 2, 1), BatchLimits(2, 6, 3)
    # Of 48 MB the quota lets a window's bytes at the low rate through at once, some 11 MB. Then a copy takes seconds:
    # leaders are left to move when the command has set the wide limits, also on a busy machine.
    with filled(three, topic, 18, 2 * MB) as admin:
        onlooker = Onlooker(three, plan, narrow, [low])
        onlooker.start()
        driver = driving(
            three, "execute", "--plan", str(tmp_path / "plan.json"), "--throttle", f"{low}B/s", "--incremental",
            "--replicas", "1", "--reassignment-batch-size", "2", "--leaders", "1",
        )  # fmt: skip
        before = wait_for(
            onlooker.watch.summary,
            lambda seen: seen.steps >= 3 and seen.most_in_flight >= 2 and seen.most_leaders >= 1,
            30,
            0.1,
            "some steps",
        )
        assert (before.most_in_flight, before.most_leaders, before.most_added) == (2, 1, 1)
        onlooker.expect(wide, [high])
        steered_us = now_us()
        bootstrap = ("--bootstrap", ",".join(three.bootstrap))
        told = cli(
            "reassign", "set", *bootstrap, "--throttle", f"{high}B/s",
            "--replicas", "2", "--reassignment-batch-size", "6", "--leaders", "3",
        )  # fmt: skip
        assert told.returncode == 0, told.stderr
        rates = [FOLLOWER_RATE, LEADER_RATE]
        wait_for(
            lambda: {admin.broker_configs(b, rates).in_force(key) for b in BROKERS for key in rates},
            lambda seen: seen == {str(high)},
            20,
            0.1,
            "the other rate on every broker",
        )
        _out, said = driver.communicate(timeout=ENDS_S)
        assert driver.returncode == 0, said
        wait_for(lambda: arrived(admin, plan), bool, 10, 0.2, "every partition to be seen at its target")
        onlooker.stop()
        nothing_left(admin, topic)
        history = read_history(readable(three)[0])
        before, after = logged(history, plan, narrow, steered_us), logged(history, plan, wide)
        seen = onlooker.watch.summary()
        print(seen, before, after)
        assert (seen.astray, seen.again) == ((), ())
        assert seen.most_in_flight <= wide.partitions
        assert seen.most_leaders <= wide.leaders
        assert (before.most_in_flight, before.most_leaders, before.most_added) == (2, 1, 1)
        assert narrow.partitions < after.most_in_flight <= wide.partitions
        assert narrow.leaders < after.most_leaders <= wide.leaders
        assert (after.most_added, after.astray, after.again) == (2, (), ())
        assert (before.added_over, after.added_over) == ((), ())


def test_a_partition_that_another_client_has_moved_is_throttled_from_where_it_is(three, tmp_path):
    topic, rate, high, limits = "moved-away", MB // 2, 4 * MB, BatchLimits(1, 1)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    plan = Plan({first: (1, 2), second: (1, 2)})
    (tmp_path / "plan.json").write_text(plan.to_json())
    bootstrap = ("--bootstrap", ",".join(three.bootstrap))
    # A follower takes what 11 s of the rate allow at once: 6.5 MB take some seconds.
    with filled(three, topic, 2, 13 * MB // 2) as admin:
        driver = driving(
            three, "execute", "--plan", str(tmp_path / "plan.json"), "--throttle", f"{rate}B/s", "--incremental",
            "--replicas", "1", "--reassignment-batch-size", "1",
        )  # fmt: skip
        wait_for(
            lambda: set(admin.reassignments([topic])), lambda listed: listed == {first}, 20, 0.05, "its first step"
        )
        paused = cli("reassign", "pause", *bootstrap)
        assert paused.returncode == 0, paused.stderr
        assert second not in admin.reassignments([topic])
        admin.alter_reassignments({second: (3,)})
        wait_for(lambda: admin.reassignments([topic]), lambda listed: not listed, 40, 0.1, "both to end")
        onlooker = Onlooker(three, plan, limits, [rate, high])
        onlooker.start()
        for command in (("set", "--throttle", f"{high}B/s"), ("resume",)):
            done = cli("reassign", *command, *bootstrap)
            assert done.returncode == 0, done.stderr
        _out, said = driver.communicate(timeout=ENDS_S)
        assert driver.returncode == 0, said
        assert "another client has changed moved-away-1: the throttle now lists the present replicas, too" in said
        wait_for(lambda: arrived(admin, plan), bool, 10, 0.2, "every partition to be seen at its target")
        onlooker.stop()
        nothing_left(admin, topic)
