"""Brokers that join and leave during a run: a host is provisioned, or drained, unregistered and removed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from results.contract.relocation import CALM, CommittedOffsets, Membership, MembershipStep
from testbed.errors import TestbedError
from testbed.experiments.committed_offsets import IdleGroups
from testbed.experiments.reassignment_run import ReassignmentRun
from testbed.experiments.unthrottled_move import RunActivity, run_alone
from testbed.faults import Faults
from testbed.faults.catalogue.broker_term import BrokerTerm
from testbed.kafka.capabilities import Capability, of_software
from testbed.kafka.errors import BROKER_NOT_REGISTERED, KafkaError
from testbed.probes.brokers import sampled_bps, watch_broker
from testbed.probes.recorder import now_us
from testbed.provision.membership import PROVISIONED, STOPPED, forget_own_hosts, note_own_hosts
from testbed.provision.provider import Progress
from testbed.provision.testbed import Testbed
from testbed.reassignment.driver import Driver
from testbed.reassignment.planners import leave
from testbed.throttle.journal import JournalFolder
from testbed.topology.host import DeclaredHost
from testbed.topology.model import Topology
from testbed.wait import WaitTimeout, wait_for

QUIET_S = 5.0
"""Seconds for which the load runs before it rises."""
DRAINED_S, DRAINED_TIMES = 120.0, 5
"""The seconds until a broker is drained, and how many times its logs ÷ NIC come on top; as of the measured move."""
KNOWN_S = 30.0
DRAINED = "drained"


class LoadRise(RunActivity):
    """An activity that raises the load from half of its rate to all of it before the broker joins."""

    def __init__(self, run: ReassignmentRun) -> None:
        self._environment = run.environment

    def load_started(self) -> None:
        """Let half of the load run alone, then raise it."""
        run_alone(self._environment, "quiet", QUIET_S)
        self._environment.load.rise()
        self._environment.recorder.event("load.risen", "load")


class MembershipChange(RunActivity):
    """The base of the activities in which a broker joins or leaves."""

    change: Literal["joined", "left"]
    _offsets: CommittedOffsets | None = None

    def __init__(self, run: ReassignmentRun) -> None:
        self._run, self._environment = run, run.environment

    @contextmanager
    def _changing(self, host: DeclaredHost) -> Iterator[Callable[[str], None]]:
        """Yield the function that notes the end of a step of the change; afterwards `membership` is known."""
        note_own_hosts(self._run.testbed)
        testbed, recorder, asked = self._run.testbed, self._run.recorder, now_us()
        steps: list[MembershipStep] = []

        def step(name: str) -> None:
            steps.append(MembershipStep(name, now_us()))
            recorder.event("scale.step", name, host=host.name)
            if name == PROVISIONED:
                own, topics = testbed.hosts[host.name], self._environment.layout.topics
                watch_broker(recorder, testbed.topology, host, own, topics)
                self._run.log_watch.join(host.name)
            elif name == STOPPED:
                recorder.leave_host(host.name)
                self._run.log_watch.leave(host.name)

        recorder.event("scale.asked", self.change, host=host.name)
        yield step
        registered, container = presence(testbed, host, wanted=self.change == "joined")
        self.membership = Membership(host.name, self.change, asked, tuple(steps), registered, container, self._offsets)


class BrokerArrival(MembershipChange):
    """An activity that adds a broker to the testbed, immediately before partitions move to it."""

    change = "joined"

    def before_move(self) -> None:
        """Provision, start and register the broker. Raise an error when that fails."""
        environment = self._environment
        (host,) = environment.setup.joining
        with self._changing(host) as step:
            environment.testbed.add_host(host, step=step, progress=environment.context.progress)
            Faults(environment.testbed).host_joined(host.name)
            # A starting JVM needs the cores that the other brokers have here, and nowhere else.
            environment.load.warm()
            step(CALM)


class BrokerRemoval(MembershipChange):
    """An activity that removes the drained broker after the move: its other replicas, its registration, its host."""

    faults = frozenset({BrokerTerm.kind})  # a controlled shutdown, as that fault is one
    change = "left"

    def after_move(self) -> None:
        """Move what internal topics have on the broker; stop it, unregister it, and remove its container.

        Before that, groups commit offsets. Afterwards the remaining coordinators are asked for them.
        """
        environment = self._environment
        host = environment.testbed.topology.host(environment.setup.leaving)
        # What its NIC carried until the move's end must be read while it is there.
        environment.recorder.wait_for_all()
        groups = IdleGroups(environment.testbed, [tp for each in environment.layout.throttled for tp in each.tps()])
        groups.commit()
        with self._changing(host) as step:
            drain_rest(environment.testbed, host)
            step(DRAINED)
            environment.testbed.remove_host(host.name, step=step, progress=environment.context.progress)
            self._offsets = groups.compare()


def presence(testbed: Testbed, host: DeclaredHost, *, wanted: bool) -> tuple[bool, bool]:
    """Return whether the controller has registered the host now, and whether the engine has its container.

    A new registration may not be in the metadata of the broker that answers yet: wait for one that is `wanted`.
    """
    registered = _listed(testbed, host) if wanted else _unregistered_again(testbed, host)
    containers = {found.host for found in testbed.engine.containers(testbed.name)}
    return registered, host.name in containers


def _listed(testbed: Testbed, host: DeclaredHost) -> bool:
    """Return whether brokers list the host, `KNOWN_S` from now at the latest."""

    def listed() -> bool:
        with testbed.admin() as admin:
            return host.node_id in {broker.id for broker in admin.cluster().brokers}

    try:
        return wait_for(listed, bool, KNOWN_S, 0.1, "the registration")
    except WaitTimeout:
        return False


def _unregistered_again(testbed: Testbed, host: DeclaredHost) -> bool:
    """Return whether the controller accepts the request to unregister the host, which it refuses without registration.

    No list shows it: brokers do not list one that is stopped, whether it is registered or not.
    """
    assert host.node_id is not None
    try:
        with testbed.admin() as admin:
            admin.unregister_broker(host.node_id)
    except KafkaError as error:
        if error.name != BROKER_NOT_REGISTERED:
            raise
        return False
    return True


def restore_hosts(testbed: Testbed, topology: Topology, progress: Progress) -> None:
    """Remove the brokers that have joined since the testbed had `topology`, and add those that have left."""
    declared = {host.name: host for host in topology.hosts}
    present = {host.name: host for host in testbed.topology.hosts}
    for name in present.keys() - declared.keys():
        drain_rest(testbed, present[name])
        testbed.remove_host(name, progress=progress)
    for name in declared.keys() - present.keys():
        testbed.add_host(declared[name], progress=progress)
        Faults(testbed).host_joined(name)
    if testbed.state.own_hosts:
        forget_own_hosts(testbed)


def drain_rest(testbed: Testbed, host: DeclaredHost) -> None:
    """Move every replica off a broker that the measured move has left there. Raise `TestbedError` on failure."""
    with testbed.admin() as admin:
        states = admin.partitions(admin.topics())
        held = {tp: state.replicas for tp, state in states.items() if host.node_id in state.replicas}
        racks = {each.node_id: each.rack for each in testbed.topology.brokers if each.node_id is not None}
        leaving = {node for node in racks if node == host.node_id}
        plan = leave(held, racks, leaving)
        if not plan.targets:
            return
        able, bytes_held = of_software(testbed.topology), 0
        try:
            if Capability.MOVES_DATA in able:
                of_brokers = admin.log_dirs(sorted(leaving)).values()
                bytes_held = sum(log.size_bytes for logs in of_brokers for log in logs.values())
            timeout_s = DRAINED_S + DRAINED_TIMES * bytes_held * 8 / min(sampled_bps(host))
            with Driver(admin, JournalFolder(), able=able) as driver:
                driver.execute(plan, None)
                driver.follow(timeout_s=timeout_s, interval_s=0.1)
        except KafkaError as error:
            raise TestbedError(f"{host.name} was not drained: {error}") from error
