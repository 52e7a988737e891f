from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.errors import TestbedError, UsageError
from testbed.kafka.health import Health
from testbed.kafka.types import TopicPartition
from testbed.provision import upgrade
from testbed.provision.upgrade import _check, _upgrade, _wanted, cannot_join, next_host, quorum_without
from testbed.topology import load_document
from tests.provision.states import make

FEATURES = {"3.9.2": {"metadata.version": 21}, "4.3.1": {"metadata.version": 30, "share.version": 1}}


def kafka(version: str):
    release = SimpleNamespace(version=version, folder=Path("/cache/kafka") / f"{version}-1")
    return SimpleNamespace(version=version, features=FEATURES[version], release=release)


def mixed_testbed(finalized: dict[str, int], *, sees_releases: bool = True):
    """b1 and b2 at 3.9.2, b3 at 4.3.1; nothing of it runs."""
    found = SimpleNamespace(exit_status=0 if sees_releases else 1)
    return SimpleNamespace(
        name="mixed",
        topology=topology(b1="both", b2="broker", b3="broker", c1="client"),
        state=SimpleNamespace(kafka={"b1": "3.9.2", "b2": "3.9.2", "b3": "4.3.1"}, defects={}),
        software=SimpleNamespace(kafka=kafka),
        hosts={name: SimpleNamespace(run=lambda command, check: found) for name in ("b1", "b2", "b3", "c1")},
        admin=lambda: nullcontext(SimpleNamespace(features=lambda: finalized)),
    )


def topology(**roles: str):
    return load_document(
        {
            "name": "mixed",
            "kafka": {"version": "4.3.1"},
            "defaults": {"nic": {"rate": "400mbit"}},
            "hosts": {name: {"role": role} for name, role in roles.items()},
        }
    )


def order(active: str, **roles: str) -> list[str]:
    declared = topology(**roles)
    waiting, found = list(declared.hosts), []
    while waiting:
        waiting.remove(host := next_host(waiting, declared.host(active).node_id))
        found.append(host.name)
    return found


@pytest.mark.parametrize(
    ("active", "roles", "expected"),
    [
        ("b1", {"b1": "both", "b2": "broker", "b3": "broker"}, ["b2", "b3", "b1"]),
        ("b2", {"b1": "both", "b2": "both", "b3": "both"}, ["b1", "b3", "b2"]),
        ("c1", {"c1": "controller", "c2": "controller", "b1": "broker", "c3": "controller"}, ["b1", "c2", "c3", "c1"]),
    ],
)
def test_brokers_come_first_and_the_active_controller_last(active, roles, expected) -> None:
    assert order(active, **roles) == expected


def test_controllers_agree_without_one_of_them_when_a_majority_is_left() -> None:
    for roles, left in (
        ({"b1": "both", "b2": "broker"}, False),
        ({"b1": "both", "b2": "both"}, False),
        ({"b1": "both", "b2": "both", "b3": "both"}, True),
    ):
        declared = topology(**roles)
        assert quorum_without(declared, declared.host("b1")) is left
    assert quorum_without(topology(b1="both", b2="broker"), topology(b1="both", b2="broker").host("b2"))


def test_a_release_joins_when_it_has_all_that_is_finalized() -> None:
    newer = {"metadata.version": 30, "share.version": 1}
    assert cannot_join({"metadata.version": 21}, newer) is None
    assert cannot_join({"metadata.version": 30, "kraft.version": 0}, newer) is None
    assert cannot_join({"metadata.version": 30, "share.version": 1}, {"metadata.version": 21}) == (
        "the cluster has finalized metadata.version=30, share.version=1, "
        "the release knows metadata.version=21, share.version=0"
    )


def test_an_observation_tells_what_is_wrong() -> None:
    partitions = tuple(TopicPartition("t", number) for number in range(7))
    seen = Health(1, 40, {1: 40, 2: 39}, partitions, frozenset())
    assert str(seen) == (
        "controller 1, metadata log 40 (followed {1: 40, 2: 39}), under-replicated: t-0, t-1, t-2, t-3, t-4, and 2 more"
    )


# ---- what is refused before any node is stopped


def test_all_hosts_that_run_kafka_are_meant_unless_some_are_named() -> None:
    testbed = mixed_testbed({})
    assert [host.name for host in _wanted(testbed, None)] == ["b1", "b2", "b3"]
    assert [host.name for host in _wanted(testbed, ["b3", "b1"])] == ["b1", "b3"]
    for hosts, told in ((["b2", "b9"], "b9 cannot be"), (["c1"], "c1 cannot be"), ([], "no host cannot be")):
        with pytest.raises(UsageError, match=f"{told} upgraded; hosts of mixed that run Kafka: b1, b2, b3"):
            _wanted(testbed, hosts)


def test_a_release_behind_what_is_finalized_is_refused() -> None:
    with pytest.raises(TestbedError, match=r"cannot be brought to Kafka 3\.9\.2: the cluster has finalized metadata"):
        _check(mixed_testbed({"metadata.version": 30}), kafka("3.9.2"), ["b1"], False)


def test_features_are_not_finalized_while_a_host_stays_behind() -> None:
    testbed = mixed_testbed({"metadata.version": 21})
    _check(testbed, kafka("4.3.1"), ["b1"], False)
    _check(testbed, kafka("4.3.1"), ["b1", "b2"], True)
    with pytest.raises(TestbedError, match=r"cannot be finalized while b2 stay at 3\.9\.2: upgrade them, too"):
        _check(testbed, kafka("4.3.1"), ["b1"], True)


def test_a_host_that_does_not_see_the_release_is_told_why() -> None:
    testbed = mixed_testbed({"metadata.version": 21}, sees_releases=False)
    with pytest.raises(
        TestbedError, match=r"b1 does not see Kafka 4\.3\.1 at /opt/kafka/releases/4\.3\.1-1: .*XDG_CACHE"
    ):
        _check(testbed, kafka("4.3.1"), ["b1"], False)


def test_a_host_that_does_not_stop_is_told_with_the_way_back() -> None:
    """It is killed then, and no message said how it is started again."""

    def stop(timeout_s: float):
        raise TestbedError(f"waited {timeout_s:g} s for Kafka on b2 to end after SIGTERM")

    on = mixed_testbed({})
    on.node = lambda _host: SimpleNamespace(stop=stop, log_tail=lambda: "shutting down")
    way_back = r"(?s)to end after SIGTERM\n.*shutting down\n`testbed upgrade mixed --to 3\.9\.2 --hosts b2` starts it"
    with pytest.raises(TestbedError, match=way_back):
        _upgrade(on, on.topology.host("b2"), kafka("4.3.1"), 1.0, print)


class InterruptedNode:
    """A node whose stop, or whose start, Ctrl-C interrupts. It notes what is done to it."""

    def __init__(self, at: str) -> None:
        self.at, self.runs = at, True
        self.done: list[str] = []

    def stop(self, timeout_s: float) -> None:
        if self.at == "stop":
            raise KeyboardInterrupt
        self.runs = False

    def start(self) -> None:
        if self.at == "start":
            self.at = ""
            raise KeyboardInterrupt
        self.runs = True
        self.done.append("started")

    def kill(self) -> None:
        self.runs = False
        self.done.append("killed")

    def pid(self) -> int | None:
        return 7 if self.runs else None


@pytest.mark.parametrize(
    ("at", "done", "version"), [("stop", ["killed", "started"], "3.9.2"), ("start", ["started"], "4.3.1")]
)
def test_ctrl_c_leaves_no_node_down(monkeypatch, at, done, version) -> None:
    """The host had no Kafka then, also on a testbed that stays up after a run."""
    on, node = mixed_testbed({}), InterruptedNode(at)
    on.node = lambda _host: node
    on.state = make("mixed", kafka=dict(on.state.kafka))
    on.record = lambda state: setattr(on, "state", state)
    monkeypatch.setattr(upgrade, "configure", lambda _testbed, host: None)
    monkeypatch.setattr(upgrade, "_observe", lambda _testbed: Health(1, 40, {}, (), frozenset()))
    with pytest.raises(KeyboardInterrupt):
        _upgrade(on, on.topology.host("b2"), kafka("4.3.1"), 1.0, print)
    assert (node.done, node.runs, on.state.kafka["b2"]) == (done, True, version)
