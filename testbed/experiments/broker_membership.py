"""Brokers that join and leave during a run: a host is provisioned, or drained, unregistered and removed."""

from contextlib import suppress

from results.contract.relocation import CALM, Membership, MembershipStep
from testbed.errors import TestbedError
from testbed.experiments.reassignment_run import ReassignmentRun
from testbed.experiments.unthrottled_move import RunActivity, run_alone
from testbed.faults.catalogue.broker_term import BrokerTerm
from testbed.kafka.capabilities import of_software
from testbed.kafka.errors import KafkaError
from testbed.probes.brokers import watch_broker
from testbed.probes.recorder import now_us
from testbed.provision.membership import PROVISIONED, STOPPED
from testbed.provision.provider import Progress
from testbed.provision.testbed import Testbed
from testbed.reassignment.driver import Driver
from testbed.reassignment.plan import Plan
from testbed.reassignment.planners import leave
from testbed.throttle.journal import JournalFolder
from testbed.topology.host import DeclaredHost
from testbed.topology.model import Topology
from testbed.wait import WaitTimeout, wait_for

QUIET_S = 5.0
"""Seconds for which the load runs before it rises."""
DRAINED_S = 120.0
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


class BrokerArrival(RunActivity):
    """An activity that adds a broker to the testbed, immediately before partitions move to it."""

    def __init__(self, run: ReassignmentRun) -> None:
        self._run, self._environment = run, run.environment
        self._membership: Membership | None = None

    def before_move(self) -> None:
        """Provision, start and register the broker. Raise an error when that fails."""
        environment = self._environment
        testbed, recorder = environment.testbed, environment.recorder
        (host,) = environment.setup.joining
        steps: list[MembershipStep] = []

        def step(name: str) -> None:
            steps.append(MembershipStep(name, now_us()))
            recorder.event("scale.step", name, host=host.name)
            if name == PROVISIONED:
                own, brokers = testbed.hosts[host.name], len(testbed.topology.brokers)
                watch_broker(recorder, host, own, environment.layout.topics, brokers=brokers)
                if self._run.log_watch is not None:
                    self._run.log_watch.join(host.name)

        asked = now_us()
        recorder.event("scale.asked", "joined", host=host.name)
        testbed.add_host(host, step=step, progress=environment.context.progress)
        # A starting JVM needs the cores that the other brokers have here, and nowhere else.
        environment.load.warm()
        step(CALM)
        self._membership = membership(testbed, host, Membership(host.name, "joined", asked, tuple(steps), False, False))

    def membership(self) -> Membership | None:
        """Return the broker that has joined."""
        return self._membership


class BrokerRemoval(RunActivity):
    """An activity that removes the drained broker after the move: its other replicas, its registration, its host."""

    faults = frozenset({BrokerTerm.kind})  # a controlled shutdown, as that fault is one

    def __init__(self, run: ReassignmentRun) -> None:
        self._run, self._environment = run, run.environment
        self._membership: Membership | None = None

    def after_move(self) -> None:
        """Move what internal topics have on the broker; stop it, unregister it, and remove its container."""
        environment = self._environment
        testbed, recorder = environment.testbed, environment.recorder
        host = testbed.topology.host(environment.setup.leaving)
        steps: list[MembershipStep] = []

        def step(name: str) -> None:
            steps.append(MembershipStep(name, now_us()))
            recorder.event("scale.step", name, host=host.name)
            if name == STOPPED:
                recorder.leave_host(host.name)
                if self._run.log_watch is not None:
                    self._run.log_watch.leave(host.name)

        asked = now_us()
        recorder.event("scale.asked", "left", host=host.name)
        drain_rest(testbed, host)
        step(DRAINED)
        testbed.remove_host(host.name, step=step, progress=environment.context.progress)
        self._membership = membership(testbed, host, Membership(host.name, "left", asked, tuple(steps), False, False))

    def membership(self) -> Membership | None:
        """Return the broker that has left."""
        return self._membership


def membership(testbed: Testbed, host: DeclaredHost, known: Membership) -> Membership:
    """Return `known` with what the controller and the engine know of the host now.

    A registration that was removed may still be in the metadata of the broker that answers: wait for that.
    """
    wanted = known.change == "joined"

    def registered() -> bool:
        with testbed.admin() as admin:
            return host.node_id in {broker.id for broker in admin.cluster().brokers}

    with suppress(WaitTimeout):
        wait_for(registered, lambda found: found is wanted, KNOWN_S, 0.1, "the registration")
    containers = {found.host for found in testbed.engine.containers(testbed.name)}
    return Membership(known.host, known.change, known.asked_us, known.steps, registered(), host.name in containers)


def restore_hosts(testbed: Testbed, topology: Topology, progress: Progress) -> None:
    """Remove the brokers that have joined since the testbed had `topology`, and add those that have left."""
    declared = {host.name: host for host in topology.hosts}
    present = {host.name: host for host in testbed.topology.hosts}
    for name in present.keys() - declared.keys():
        drain_rest(testbed, present[name])
        testbed.remove_host(name, progress=progress)
    for name in declared.keys() - present.keys():
        testbed.add_host(declared[name], progress=progress)


def drain_rest(testbed: Testbed, host: DeclaredHost) -> None:
    """Move every replica off a broker that the measured move has left there. Raise `TestbedError` on failure."""
    with testbed.admin() as admin:
        states = admin.partitions(admin.topics())
        held = {tp: state.replicas for tp, state in states.items() if host.node_id in state.replicas}
        racks = {each.node_id: each.rack for each in testbed.topology.brokers if each.node_id is not None}
        plan: Plan = leave(held, racks, {node for node in racks if node == host.node_id})
        if not plan.targets:
            return
        able = of_software(testbed.topology)
        try:
            with Driver(admin, JournalFolder(), able=able) as driver:
                driver.execute(plan, None)
                driver.follow(timeout_s=DRAINED_S, interval_s=0.1)
        except KafkaError as error:
            raise TestbedError(f"{host.name} was not drained: {error}") from error
