"""Every criterion is seen to fail on real brokers, for the reason that it exists for.

Here the brokers are healthy: somebody interferes with the run, or its driver or observer is wrong. What wrong brokers
show is played by `testbed selftest`. With TESTBED_EVIDENCE=1 the runs go into `docs/measurements/criteria.json`.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from results.contract.clocks import ClockReading
from results.contract.store import Store
from results.criteria.catalogue import brokers_unrestrained, nic_unchanged
from testbed.cgroups import CGROUPS, ContainerCgroup
from testbed.errors import TestbedError
from testbed.experiments import batched_move, experiment_run, kip455_trace, move_driver
from testbed.experiments.catalogue import cold_read
from testbed.experiments.committed_offsets import EARLIER, GROUPS, LATEST
from testbed.experiments.experiment_run import RunRequest, run
from testbed.experiments.mid_move_actions import SourceKill
from testbed.faults import Faults, parse_fault
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.provision import state as states
from testbed.provision.testbed import Testbed
from testbed.reassignment.metadata_log import MetadataHistory
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import FOLLOWER_RATE, LEADER_RATE
from testbed.throttle.recovery import _Restore
from testbed.wait import wait_for, wait_until
from tests.containers.conftest import cli, measured, needs_automq
from tools.evidence import ROWS, Demonstration, add, rows_of

pytestmark = [pytest.mark.containers, pytest.mark.nightly, pytest.mark.alone]
EVIDENCE = "TESTBED_EVIDENCE"
Act = Callable[[Testbed, Admin], None]
SHORT = RunRequest("kip73-two-node", ("preload=20s",), "smoke")
LOADED = RunRequest("kip73-two-node-produce", ("preload=20s", "compare=none"), "smoke")
BATCHED = RunRequest(
    "kip435-exchange", ("mode=batched", "replicas=1", "leaders=1", "reassignment-batch-size=5"), "smoke"
)
DISK = RunRequest("s3-reassign", ("storage=disk",), "smoke", topology="two-brokers")
STEPS = RunRequest("kip455-example")


@dataclass(frozen=True)
class Case:
    """A run, what is done to it, and the criteria that do not hold then. `verdict` is theirs."""

    criteria: tuple[str, ...]
    cause: str
    request: RunRequest
    act: Act | None = None
    """Done by another thread, once there is a testbed."""
    patch: Callable[[pytest.MonkeyPatch], None] | None = None
    verdict: str = "fail"

    def __str__(self) -> str:
        return self.criteria[0]


# ---- when


def until_moving(testbed: Testbed, admin: Admin) -> None:
    """Wait for the throttled move: the calibration before it has no throttle."""
    brokers = [host.node_id for host in testbed.topology.brokers]

    def moving() -> bool:
        rates = [admin.broker_configs(broker).in_force(LEADER_RATE) for broker in brokers]
        return all(rates) and admin.reassignments() != {}

    wait_until(moving, 150, 0.2, "the throttled move")


def until_idle(admin: Admin) -> None:
    wait_until(lambda: admin.reassignments() == {}, 150, 0.2, "the end of the move")


def topics(admin: Admin, prefix: str) -> list[str]:
    return wait_for(
        lambda: [name for name in admin.topics() if name.startswith(prefix)], bool, 150, 0.1, f"the topic {prefix}"
    )


# ---- what others do to a run


def quota(rate: int | None, broker: int, *keys: str) -> Act:
    def act(testbed: Testbed, admin: Admin) -> None:
        until_moving(testbed, admin)
        values = {} if rate is None else {key: str(rate) for key in keys}
        admin.alter_configs(ConfigResource.broker(broker), values, [] if values else list(keys))

    return act


def quotas(rate: int, *brokers: int) -> Act:
    def act(testbed: Testbed, admin: Admin) -> None:
        until_moving(testbed, admin)
        for broker in brokers:
            admin.alter_configs(ConfigResource.broker(broker), {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)})

    return act


def reshape(testbed: Testbed, rate: str) -> None:
    """Give what b2 receives another rate than declared."""
    fabric, _hosts = testbed.pids()
    change = f"tc class replace dev port1 parent 1: classid 1:10 htb rate {rate} ceil {rate} quantum 1514"
    subprocess.run(["nsenter", f"--net=/proc/{fabric}/ns/net", "--", *change.split()], check=True)


def nic_lowered(testbed: Testbed, admin: Admin) -> None:
    until_moving(testbed, admin)
    reshape(testbed, "30mbit")


def nic_wrong_from_the_start(testbed: Testbed, admin: Admin) -> None:
    topics(admin, "kip73")  # being filled: the NICs are measured after that
    reshape(testbed, "200mbit")


def busy(testbed: Testbed, admin: Admin) -> None:
    """Compute on all cores for as long as data moves, a minute at most."""
    until_moving(testbed, admin)
    burn = "import time; end = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    processes = [subprocess.Popen([sys.executable, "-c", burn]) for _core in range(2 * (os.cpu_count() or 1))]
    try:
        until_idle(admin)
    finally:
        for each in processes:
            each.kill()
            each.wait()


def writing_to_disk(testbed: Testbed, admin: Admin) -> None:
    """Write to the disk of the brokers, synchronously, for as long as data moves, a minute at most."""
    until_moving(testbed, admin)
    write = "while :; do dd if=/dev/zero of=$0 bs=1M count=200 oflag=dsync 2>/dev/null; done"
    files = [Path(f"/var/tmp/testbed-demonstration-{number}") for number in range(6)]
    processes = [subprocess.Popen(["timeout", "60", "sh", "-c", write, str(path)]) for path in files]
    try:
        until_idle(admin)
    finally:
        for each, path in zip(processes, files, strict=True):
            each.terminate()
            each.wait()
            path.unlink(missing_ok=True)


GROUP_BYTES, READ_BYTES, READERS = 32 << 20, 128 << 20, 4


def short_of_memory(testbed: Testbed, admin: Admin) -> None:
    """Read a file that is larger than a control group's memory for as long as data moves, a minute at most.

    The kernel evicts what the readers need next. No other process loses memory.
    """
    until_moving(testbed, admin)
    name, path = "testbed-demonstration", Path("/var/tmp/testbed-demonstration")
    group = ContainerCgroup(f"1:memory:/{name}" if (CGROUPS / "memory").exists() else f"0::/{name}")
    folder, _version = group.folder("memory")
    read = "echo $$ > $0/cgroup.procs; while :; do dd if=$1 of=/dev/null bs=64k 2>/dev/null; done"
    folder.mkdir()
    try:
        group.limit_memory(GROUP_BYTES)
        with path.open("wb") as file:
            file.write(os.urandom(READ_BYTES))
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # what is read next belongs to the group
        processes = [
            subprocess.Popen(["timeout", "60", "sh", "-c", read, str(folder), str(path)]) for _ in range(READERS)
        ]
        try:
            until_idle(admin)
        finally:
            for each in processes:
                each.terminate()
                each.wait()
    finally:
        path.unlink(missing_ok=True)
        wait_until(lambda: not (folder / "cgroup.procs").read_text(), 10, 0.1, "the control group to be empty")
        folder.rmdir()


def frozen(host: str, seconds: float) -> Act:
    """Kafka on a host answers no request for some time, while data moves."""

    def act(testbed: Testbed, admin: Admin) -> None:
        until_moving(testbed, admin)
        time.sleep(6)  # so that copying has begun
        with Faults(testbed).injected(parse_fault(f"broker-pause host={host}")):
            time.sleep(seconds)

    return act


def stopped_in_steps(testbed: Testbed, admin: Admin) -> None:
    """Stop the broker that is to get a replica for 5 s, once the scenario has requested the move."""
    wait_until(lambda: admin.reassignments() != {}, 150, 0.05, "the scenario's move")
    with Faults(testbed).injected(parse_fault("broker-pause host=b4")):
        time.sleep(5)


def log_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run does not ask the metadata log what other clients changed."""
    monkeypatch.setattr(experiment_run, "read_changes", lambda *_run: ())


def frames_dropped(testbed: Testbed, admin: Admin) -> None:
    """A firewall of b2 drops what b1 sends, for 3 s."""
    until_moving(testbed, admin)
    _fabric, hosts = testbed.pids()
    enter = ["nsenter", f"--net=/proc/{hosts['b2']}/ns/net", "--", "iptables"]
    rule = ["INPUT", "-i", "data0", "-j", "DROP"]
    subprocess.run([*enter, "-A", *rule], check=True)
    time.sleep(3)
    subprocess.run([*enter, "-D", *rule], check=True)


def strangers_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run does not see connections that are not its own: their bytes could be a broker's."""
    monkeypatch.setattr(nic_unchanged, "foreign_traffic", lambda _run, _host: [])


def pause_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run judges its clients as if no reading said that a broker was stopped."""
    monkeypatch.setattr(brokers_unrestrained, "held_back", lambda _run: {})


def producers_frozen(testbed: Testbed, admin: Admin) -> None:
    """Stop this run's producer for longer than it can catch up with."""
    until_moving(testbed, admin)
    pids = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit() and _is_producer(each)]
    assert pids, "no producer runs"
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        until_idle(admin)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _is_producer(process: Path) -> bool:
    with contextlib.suppress(OSError):  # it may have ended
        child = re.search(rf"^PPid:\s+{os.getpid()}$", (process / "status").read_text(), re.M)
        return bool(child) and "testbed.workload" in (process / "cmdline").read_text()
    return False


def cut_twice(testbed: Testbed, admin: Admin) -> None:
    """Brokers that do not reach each other for longer than a follower may lag, twice."""
    until_moving(testbed, admin)
    low = topics(admin, "low")

    def in_sync() -> set[int]:
        return {len(state.isr) for state in admin.partitions(low).values()}

    for _ in range(2):
        with Faults(testbed).injected(parse_fault("nic-cut hosts=b1 peers=b2")):
            wait_until(lambda: in_sync() == {1}, 60, 0.2, "the ISR to shrink")
        wait_until(lambda: in_sync() == {2}, 60, 0.2, "the ISR to be whole")


def moved_before(testbed: Testbed, admin: Admin) -> None:
    """A partition is on the other broker before the run moves it."""
    (name,) = topics(admin, "kip73")
    admin.alter_reassignments({TopicPartition(name, 0): (2,)})


def moved_back(testbed: Testbed, admin: Admin) -> None:
    """A partition that has arrived is sent back by a second operator."""
    (name,) = topics(admin, "kip435")
    before = {tp: state.replicas for tp, state in admin.partitions([name]).items()}

    def arrived() -> list[TopicPartition]:
        listed = admin.reassignments()
        now = admin.partitions([name])
        return [tp for tp, was in before.items() if tp not in listed and not set(now[tp].replicas) & set(was)]

    first = wait_for(arrived, bool, 150, 0.1, "a partition to arrive")[0]
    admin.alter_reassignments({first: before[first]})


def theirs_moved(_testbed: Testbed, admin: Admin) -> None:
    """A second operator moves a topic of its own while the run's plan is carried out."""
    admin.create_topic("theirs", {0: [1]})
    until_moves(admin, "kip73")
    admin.alter_reassignments({TopicPartition("theirs", 0): (2,)})


def until_moves(admin: Admin, start: str, timeout_s: float = 150) -> None:
    """Wait until a topic whose name begins so is reassigned: the calibration before it is not."""

    def moves() -> bool:
        return any(tp.topic.startswith(start) for tp in admin.reassignments())

    wait_until(moves, timeout_s, 0.05, f"the move of {start}")


SINK = """
import socket
with socket.create_server(("", 5001)) as server:
    print("ready", flush=True)
    connection, _ = server.accept()
    while connection.recv(1 << 16): pass
"""
SOURCE = """
import socket, sys, time
with socket.create_connection((sys.argv[1], 5001)) as connection:
    for _ in range(int(sys.argv[2])):
        connection.sendall(bytes(1_000_000))
        time.sleep(float(sys.argv[3]))
"""


def sent(testbed: Testbed, target: str, megabytes: int, when: Callable[[], None], pause_s: float = 0.0) -> None:
    """A process of b1 sends so much to another host, over the NICs for data, once `when` returns; it pauses each MB."""
    sink = testbed.hosts[target].spawn(["timeout", "400", "python3", "-c", SINK])
    lines = sink.lines()
    try:
        assert next(lines).strip() == "ready"
        when()
        receiver = str(testbed.plan.data_ip(target))
        testbed.hosts["b1"].run(["python3", "-c", SOURCE, receiver, str(megabytes), str(pause_s)], timeout_s=60)
    finally:
        sink.stop()


def copied_twice(testbed: Testbed, admin: Admin) -> None:
    """A process of b1 sends 60 MB to b2 while data moves."""
    sent(testbed, "b2", 60, lambda: until_moves(admin, "s3"))


def uploaded_again(testbed: Testbed, admin: Admin) -> None:
    """A process of b1 sends 250 MB to the store, some 12 MB/s, once partitions have another leader."""
    (name,) = topics(admin, "s3")

    def leaders() -> list[int | None]:
        return [state.leader for _tp, state in sorted(admin.partitions([name]).items())]

    def handed_over() -> None:
        before = wait_for(leaders, lambda found: bool(found) and None not in found, 60, 0.2, "leaders")
        wait_until(lambda: leaders() != before, 240, 0.1, "another leader")

    sent(testbed, "s1", 250, handed_over, pause_s=0.08)


def store_down(testbed: Testbed, admin: Admin) -> None:
    """The store answers no request while data moves."""
    until_moves(admin, "s3")
    with Faults(testbed).injected(parse_fault("objectstore-down host=s1")):
        time.sleep(10)


def local_retention_raised(testbed: Testbed, admin: Admin) -> None:
    """Keep 1 GiB of each tiered partition on disk, once the store has what was written before the load."""
    (calibration,) = topics(admin, "calibration")

    def calibrated() -> bool:
        return {state.replicas for state in admin.partitions([calibration]).values()} == {(2,)}

    wait_until(calibrated, 150, 0.2, "the end of the calibration")
    (name,) = topics(admin, "s3")
    admin.alter_configs(ConfigResource.topic(name), {"local.retention.bytes": str(1 << 30)})


def offset_lowered(testbed: Testbed, _admin: Admin) -> None:
    """A second client commits a lower offset for one of the run's groups, once the run has committed."""

    def committed() -> Mapping[TopicPartition, int]:
        with contextlib.suppress(KafkaError), testbed.admin() as admin:
            return admin.committed_offsets(GROUPS).get(GROUPS[-1], {})
        return {}

    last = wait_for(committed, lambda offsets: LATEST in offsets.values(), 400, 0.3, "the run's commits")

    def lowered() -> bool:
        with contextlib.suppress(KafkaError), testbed.admin() as admin:
            admin.commit_offsets(GROUPS[-1], {min(last): EARLIER})
            return True
        return False

    wait_until(lowered, 30, 0.3, "a coordinator")


def clock_set(testbed: Testbed, admin: Admin) -> None:
    """The machine's clock is set 3 s ahead, and back."""
    until_moving(testbed, admin)
    for ahead_s in (3, -3):
        time.clock_settime(time.CLOCK_REALTIME, time.time() + ahead_s)
        time.sleep(4)


# ---- drivers and observers that are wrong


def limits_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    made = batched_move.JobControl

    def doubled(limits, rate):
        more = {
            key: None if value is None else 2 * value
            for key in ("replicas", "partitions", "leaders")
            for value in [getattr(limits, key)]
        }
        return made(replace(limits, **more), rate)

    monkeypatch.setattr(batched_move, "JobControl", doubled)


def partition_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    made = batched_move.Job.new

    def new(bootstrap: str, cluster: str, mode, plan: Plan):
        return made(bootstrap, cluster, mode, Plan(dict(sorted(plan.targets.items())[:-1])))

    monkeypatch.setattr(batched_move.Job, "new", new)


def another_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = move_driver.plan

    def plan(groups, ids) -> Plan:
        targets = planned(groups, ids).targets
        token = next(iter(targets)).topic.rpartition("-")[2]
        return Plan({**targets, TopicPartition(f"calibration-{token}", 0): (1,)})

    monkeypatch.setattr(move_driver, "plan", plan)


def throttle_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Restore, "put_back", lambda _self: None)


def quota_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    alter = Admin.alter_configs

    def without(self, resource: ConfigResource, values: Mapping[str, str], *removed) -> None:
        second = resource == ConfigResource.broker(2)
        alter(self, resource, {k: v for k, v in values.items() if not (second and k == FOLLOWER_RATE)}, *removed)

    monkeypatch.setattr(Admin, "alter_configs", without)


def cache_not_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold_read, "EVICT", "print(1)")


def history_without_its_last(monkeypatch: pytest.MonkeyPatch) -> None:
    read = kip455_trace.read_history

    def cut(host) -> MetadataHistory:
        history = read(host)
        last = max(
            (each for each in history.changes if each.tp.topic.startswith("kip455")), key=lambda each: each.offset
        )
        earlier = [each for each in history.changes if each.tp == last.tp and each is not last]
        changes = tuple(each for each in history.changes if each is not last)
        return replace(history, changes=changes, now={**history.now, last.tp: earlier[-1]})

    monkeypatch.setattr(kip455_trace, "read_history", cut)


def epochs_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    described = kip455_trace._described

    def other(state):
        detail = dict(described(state))
        if "leader_epoch" in detail:
            detail["leader_epoch"] += 100
        return detail

    monkeypatch.setattr(kip455_trace, "_described", other)


def clock_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        experiment_run, "clock_readings", lambda _testbed, when: (ClockReading("other", when, 0.2, 0.001),)
    )


def kill_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SourceKill, "killed_us", property(lambda _self: None, lambda _self, _us: None))


def epochs_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    logged = kip455_trace._logged
    seen = iter(range(1_000_000))

    def lower(registration):
        return {**logged(registration), "partition_epoch": 1_000_000 - next(seen)}

    monkeypatch.setattr(kip455_trace, "_logged", lower)


UNREAD = ", and the run does not read the metadata log"
CASES = (
    Case(
        ("quota-in-force",),
        f"a second tool removes the follower's quota of b2{UNREAD}",
        SHORT,
        quota(None, 2, FOLLOWER_RATE),
        log_not_read,
    ),
    Case(
        ("throttled-window", "steady-mean", "long-window-bound"),
        f"a second tool doubles the quota of both brokers{UNREAD}",
        SHORT,
        quotas(10_000_000, 1, 2),
        log_not_read,
    ),
    Case(
        ("steady-mean", "duration-model"),
        f"a second tool halves the quota of b2{UNREAD}",
        SHORT,
        quotas(2_500_000, 2),
        log_not_read,
    ),
    Case(("nic-unchanged",), "somebody lowers a NIC while data moves", SHORT, nic_lowered, verdict="inconclusive"),
    Case(("nic-unchanged",), "a firewall drops frames for 3 s", SHORT, frames_dropped, verdict="inconclusive"),
    Case(
        ("nic-measured",),
        "a NIC carries half of what is declared",
        SHORT,
        nic_wrong_from_the_start,
        None,
        "inconclusive",
    ),
    Case(("machine-load",), "other processes compute on every core", SHORT, busy, verdict="inconclusive"),
    Case(("disk-pressure",), "another process writes to the disk", SHORT, writing_to_disk, verdict="inconclusive"),
    Case(("memory-pressure",), "other processes wait for memory", SHORT, short_of_memory, verdict="inconclusive"),
    Case(("load-rate-sustained",), "the producer is stopped", LOADED, producers_frozen, verdict="inconclusive"),
    Case(
        ("clients-protected",),
        "the sender answers no request for 5 s, and the run does not see that it is stopped",
        replace(LOADED, settings=("preload=20s", "compare=return")),
        frozen("b1", 5),
        pause_not_seen,
    ),
    Case(("brokers-unrestrained",), "somebody stops a broker for 5 s", SHORT, frozen("b1", 5), verdict="inconclusive"),
    Case(
        ("brokers-unrestrained",),
        "somebody stops a broker of a KIP-455 scenario for 5 s",
        RunRequest("kip455-override-same"),
        stopped_in_steps,
        verdict="inconclusive",
    ),
    Case(("no-isr-shrink",), "two brokers lose each other, twice", RunRequest("kip73-mixed-volume"), cut_twice),
    Case(
        ("control-unthrottled",),
        "defect `throttle-holds-unlisted`",
        RunRequest("kip73-two-node", ("preload=30s", "partitions=10"), "smoke", defects=("throttle-holds-unlisted",)),
    ),
    # In the model the sender binds. Here one receiver takes most of its quota, and then the other goes on alone.
    Case(
        ("bottleneck-as-modelled",),
        f"a second tool lowers the quota of one of two receivers to a quarter{UNREAD}",
        RunRequest("kip73-one-to-two", ("preload=60s",), "smoke"),
        quota(1_250_000, 3, FOLLOWER_RATE),
        log_not_read,
    ),
    Case(("leaders-as-planned",), "a second operator moves a partition beforehand", SHORT, moved_before),
    Case(("config-restored",), "the driver does not remove the throttle", SHORT, patch=throttle_left),
    Case(("quota-before-move",), "the quota of one broker is not written", SHORT, patch=quota_not_written),
    Case(
        ("stall-detected",),
        f"a second tool raises the throttle before the driver notices{UNREAD}",
        RunRequest("kip73-stuck"),
        quotas(40_000_000, 1, 2),
        log_not_read,
    ),
    Case(
        ("throttle-changed",),
        "the move is over before the changes",
        RunRequest("kip73-live-change"),
        quotas(100_000_000, 1, 2),
        verdict="inconclusive",
    ),
    Case(
        ("brokers-restarted",),
        "the move is over before the restarts",
        RunRequest("kip73-bounce"),
        quotas(100_000_000, 1, 2, 3),
        verdict="inconclusive",
    ),
    Case(
        ("leaders-in-flight", "replicas-fetching", "steps-as-planned"),
        "the driver doubles R, P and L",
        BATCHED,
        patch=limits_doubled,
    ),
    Case(
        ("partitions-in-flight", "replicas-per-step"),
        "the driver doubles R and P",
        RunRequest("kip435-rf4", ("mode=batched", "replicas=1", "reassignment-batch-size=5", "preload=20s")),
        patch=limits_doubled,
    ),
    Case(("last-step",), "the driver forgets a partition", BATCHED, patch=partition_forgotten),
    Case(
        ("no-double-copy",),
        f"a second operator sends a partition back{UNREAD}",
        BATCHED,
        moved_back,
        log_not_read,
    ),
    Case(
        ("p99-recovery",),
        "defect `taken-over-slow:ms=100`",
        RunRequest(
            "scale-in", ("storage=disk",), "smoke", topology="three-brokers", defects=("taken-over-slow:ms=100",)
        ),
    ),
    Case(
        ("committed-offsets",),
        "a second client commits a lower offset for a group",
        RunRequest("scale-in", ("storage=disk",), "smoke", topology="three-brokers"),
        offset_lowered,
    ),
    Case(
        ("tiered-local-fraction",),
        "a second operator keeps more on disk",
        RunRequest("s3-reassign", ("storage=tiered", "size=150MB", "inbound=3MB/s"), "smoke"),
        local_retention_raised,
        verdict="inconclusive",
    ),
    Case(
        ("handover",),
        "the old broker is killed, and the run is not informed",
        RunRequest("s3-reassign", ("storage=automq", "source=killed"), "smoke", topology="automq"),
        patch=kill_not_told,
    ),
    Case(
        ("uploaded-remainder",),
        "another process sends 250 MB from b1 to the store, and the run does not see its connection",
        RunRequest("s3-reassign", ("storage=automq",), "smoke"),
        uploaded_again,
        strangers_not_seen,
    ),
    Case(
        ("copied-bytes",),
        "another process sends 60 MB from b1 to b2, and the run does not see its connection",
        DISK,
        copied_twice,
        strangers_not_seen,
    ),
    Case(("nic-unchanged",), "another process sends 60 MB from b1 to b2", DISK, copied_twice, verdict="inconclusive"),
    Case(
        ("duration-formula", "s3-seconds"),
        "defect `fetch-delay:ms=3000`",
        RunRequest("s3-reassign", ("storage=tiered", "size=150MB"), "smoke", defects=("fetch-delay:ms=3000",)),
    ),
    Case(
        ("nic-bound",),
        "defect `fetch-delay:ms=200`",
        RunRequest("kip73-nic-bound", ("preload=20s", "partitions=20"), defects=("fetch-delay:ms=200",)),
    ),
    Case(
        ("first-window",),
        "defects `leader-throttle-leak:share=0.5` and `follower-throttle-leak:share=0.5`",
        RunRequest(
            "kip73-fetch-size",
            ("response=1MiB", "fetch=tuned", "rate=3MB/s", "preload=25s", "partitions=20"),
            defects=("leader-throttle-leak:share=0.5", "follower-throttle-leak:share=0.5"),
        ),
    ),
    Case(
        ("cold-read",),
        "the page cache is not evicted",
        RunRequest("cold-read", ("storage=disk",), "smoke", topology="two-brokers"),
        patch=cache_not_evicted,
        verdict="inconclusive",
    ),
    Case(
        ("store-requests",),
        "the store is down while data moves",
        RunRequest("s3-reassign", ("storage=tiered",), "smoke"),
        store_down,
        verdict="inconclusive",
    ),
    Case(("clock-steady",), "the machine's clock is set, and set back", SHORT, clock_set, verdict="inconclusive"),
    Case(("clocks-agree",), "another machine's clock is 0.2 s ahead", SHORT, patch=clock_ahead, verdict="inconclusive"),
    Case(
        ("in-sync-unbounded",),
        "defect `throttle-holds-in-sync`",
        RunRequest("kip435-rf4", ("phase=30s", "preload=60s"), defects=("throttle-holds-in-sync",)),
    ),
    Case(("reassignment-metrics",), "defect `moves-uncounted`", replace(SHORT, defects=("moves-uncounted",))),
    Case(
        ("new-leader-uploads",),
        "defect `uploads-stopped`",
        RunRequest("s3-reassign", ("storage=tiered",), "smoke", defects=("uploads-stopped",)),
    ),
    Case(("move-done",), "defect `log-not-deleted`", replace(SHORT, defects=("log-not-deleted",))),
    Case(("move-done",), "the driver moves a partition outside of the plan as well", SHORT, patch=another_moved),
    # The leader adds broker 4 to the ISR 10 s late: the move is complete as late.
    Case(("steps-in-time",), "defect `late-isr`", replace(STEPS, defects=("late-isr",))),
    Case(("logs-as-placed",), "defect `log-not-deleted`", replace(STEPS, defects=("log-not-deleted",))),
    Case(("trace-whole",), "the last record of the trace is missing", STEPS, patch=history_without_its_last),
    Case(("polling-agrees",), "answers name a leader epoch that never was", STEPS, patch=epochs_ahead),
    Case(("epochs-ascend",), "the trace has descending epochs", STEPS, patch=epochs_lowered),
)


@contextlib.contextmanager
def meanwhile(act: Act | None) -> Iterator[None]:
    """Do `act` in another thread with the testbed that the block brings up. Raise its error at the end."""
    if act is None:
        yield
        return
    before, failed, over = set(states.names()), [], threading.Event()

    def found() -> Testbed | None:
        assert not over.is_set(), "the run ended before it had a testbed"
        for name in set(states.names()) - before:
            with contextlib.suppress(TestbedError):  # being made
                return Testbed.attach(name)
        return None

    def acting() -> None:
        try:
            testbed = wait_for(found, lambda each: each is not None, 90, 0.2, "the run's testbed")
            with contextlib.closing(testbed), testbed.admin() as admin:
                act(testbed, admin)
        except Exception as error:  # noqa: BLE001 - the test raises it
            failed.append(error)

    thread = threading.Thread(target=acting)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(180)
    assert not thread.is_alive(), "what was to be done to the run has not ended"
    if failed:
        raise failed[0]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(case), marks=needs_automq if "storage=automq" in case.request.settings else ())
        for case in CASES
    ],
)
def test_a_criterion_does_not_hold_for_the_reason_it_exists_for(case, monkeypatch, tmp_path):
    store = str(tmp_path / "store")
    try:
        with monkeypatch.context() as patched, meanwhile(case.act):
            if case.patch is not None:
                case.patch(patched)
            result = run(replace(case.request, store=store), print)
    finally:
        cli("reassign", "recover", "--forget")
    kafka = ", ".join(sorted(set(Store.open(store).manifest(result.run_id).versions.kafka.values())))
    rows = rows_of(result.criteria, case.cause, result.run_id, kafka, case.verdict)
    for each in result.criteria:
        print(f"{each.verdict:12} {each.name} {each.host or ''} {each.direction or ''}: {each.why}")
    mine: list[Demonstration] = [row for row in rows if row.criterion in case.criteria]
    if os.environ.get(EVIDENCE):
        add(mine, ROWS)
    if {row.criterion for row in mine} != set(case.criteria):
        measured([{"name": each.name, "verdict": each.verdict, "why": each.why} for each in result.criteria])
    assert {row.criterion for row in mine} == set(case.criteria)


def test_what_a_second_tool_reassigned_in_a_batched_move_is_named_and_not_blamed_on_kafka(tmp_path):
    with meanwhile(moved_back):
        result = run(replace(BATCHED, store=str(tmp_path / "store")), print)
    found = {each.name: each for each in result.criteria}
    assert result.verdict == "inconclusive", {each.name: each.why for each in result.criteria if each.verdict == "fail"}
    assert " was reassigned to " in found["cluster-unchanged"].why


def test_a_topic_of_its_own_that_a_second_tool_moved_is_named_and_not_blamed_on_kafka(tmp_path):
    with meanwhile(theirs_moved):
        result = run(replace(SHORT, store=str(tmp_path / "store")), print)
    found = {each.name: each for each in result.criteria}
    assert result.verdict == "inconclusive", {each.name: each.why for each in result.criteria if each.verdict == "fail"}
    assert "theirs-0 was reassigned to [2]" in found["cluster-unchanged"].why
    assert found["move-done"].verdict == "inconclusive"


def test_what_a_second_tool_changed_is_named_and_not_blamed_on_kafka(tmp_path):
    with meanwhile(quotas(2_500_000, 2)):
        result = run(replace(SHORT, store=str(tmp_path / "store")), print)
    found = {each.name: each for each in result.criteria}
    assert result.verdict == "inconclusive", {each.name: each.why for each in result.criteria if each.verdict == "fail"}
    assert "throttled.rate of broker 2 was set to 2500000" in found["cluster-unchanged"].why
