"""Actions during a move: change the throttle, raise it after a stall, restart or upgrade brokers, slow a NIC."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import not_
from typing import TYPE_CHECKING, NoReturn

from results.criteria.quantities import DRIVER
from testbed.errors import SoftwareError, TestbedError, UsageError
from testbed.faults import Faults
from testbed.faults.catalogue.broker_kill import BrokerKill
from testbed.faults.catalogue.broker_restart import BrokerRestart
from testbed.faults.catalogue.nic_rate import NicRate
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.network.shape import payload_bytes_per_s
from testbed.probes.recorder import now_us
from testbed.provision.containers import EngineGone
from testbed.provision.liveness import NotWhole
from testbed.provision.upgrade import cannot_join, rolling_upgrade
from testbed.reassignment.driver import DriverError
from testbed.reassignment.progress import Poll
from testbed.reassignment.stall import StallDetector
from testbed.software.format import levels_of, lowest
from testbed.software.kafka import kafka_release
from testbed.topology.model import Topology
from testbed.units import format_bit_rate, format_byte_rate
from testbed.wait import WaitTimeout, wait_for

if TYPE_CHECKING:
    from testbed.experiments.reassignment_run import ReassignmentRun
    from testbed.provision.testbed import Testbed

BACK_IN_SYNC_S = 60.0
FIRST_LAG_S = 1.5
"""Seconds after the start of a move until the latest lag sample, one a second, is a sample of the move."""
SAME = "same"
"""The setting in place of a Kafka version: each host keeps its version, and brokers are only restarted."""
_LOOK_S = 0.2


class MidMoveAction:
    """The base of actions: it does nothing. An action overrides some methods. The run calls them in this order."""

    no_model: str = ""
    """The reason why no model predicts the duration of the move; empty: a model does."""
    faults: frozenset[str] = frozenset()
    """The kinds of the injected faults: brokers may log the lines that these cause."""
    killed_us: int | None = None
    """When a broker that the action killed was dead, in microseconds since the epoch; None: it killed none."""
    slowest_bytes_per_s: int = 0
    """The rate in B/s, of a throttle or of a NIC, at which the move must end at the latest; 0: the first throttle."""
    waits_s: float = 0.0
    """Seconds for which the action lets the first throttle stand, before `slowest_bytes_per_s` holds."""

    def check(self, _topology: Topology) -> None:
        """Raise `UsageError` when the topology does not allow the action. No run has begun yet."""

    def check_kafka(self, _topology: Topology, _testbed: "Testbed | None") -> None:
        """Raise `UsageError` when the Kafkas of the hosts do not allow the action. No record has been written yet.

        The testbed is the one that is up; None: it will be made, each host with the Kafka of the topology. Raise
        `SoftwareError` when a Kafka is not available.
        """

    @contextmanager
    def around(self, _move: "ReassignmentRun") -> Iterator[None]:
        """Surround the run from the measurement of the NICs to the end of the sampling."""
        yield

    def measured_topology(self, topology: Topology) -> Topology:
        """Return the topology with the NIC rates that hold within `around`. Raise `UsageError` if it cannot be so."""
        return topology

    def started(self, _move: "ReassignmentRun") -> None:
        """Note that the controller accepted the move."""

    def on_poll(self, _move: "ReassignmentRun", _poll: Poll) -> None:
        """Act when the time has come. The run calls this at every poll of the move, and does not poll meanwhile."""

    def missing(self) -> str:
        """Return the actions that did not happen because the move ended earlier; empty when all happened."""
        return ""


def _wait_in_sync(move: "ReassignmentRun", host: str) -> None:
    """Wait until every replica of a host is in sync. Raise `WaitTimeout` after `BACK_IN_SYNC_S`."""
    wait_for(lambda: move.environment.out_of_sync(host), not_, BACK_IN_SYNC_S, _LOOK_S, f"{host} to be back in sync")


class LiveChange(MidMoveAction):
    """An action that changes the throttle during the move, to each rate after `phase_s` seconds of the last one."""

    def __init__(self, rates_bytes_per_s: Sequence[int], phase_s: float) -> None:
        self._rates = list(rates_bytes_per_s)
        self.slowest_bytes_per_s = self._rates[-1]
        self._phase_s = phase_s
        self._next_s = 0.0

    def started(self, _move: "ReassignmentRun") -> None:
        """Start the clock of the first phase."""
        self._next_s = time.monotonic() + self._phase_s

    def on_poll(self, move: "ReassignmentRun", poll: Poll) -> None:
        """Change the throttle when the phase is over."""
        if self._rates and poll.in_flight and time.monotonic() >= self._next_s:
            rate = self._rates[0]
            move.context.progress(f"changing the throttle to {format_byte_rate(rate)}")
            move.change_rate(rate)
            # The rate leaves the list only after success: the next poll requests an unanswered change again.
            self._rates.pop(0)
            self._next_s = time.monotonic() + self._phase_s

    def missing(self) -> str:
        """Return the rates that were never set."""
        return f"the throttle was never {', '.join(map(format_byte_rate, self._rates))}" if self._rates else ""


class RaiseAfterStall(MidMoveAction):
    """An action that detects a stall of the summed lag, reports it, and raises the throttle, once."""

    def __init__(self, raised_bytes_per_s: int, patience_s: float) -> None:
        self._raised = self.slowest_bytes_per_s = raised_bytes_per_s
        self.waits_s = patience_s + FIRST_LAG_S
        self._detector = StallDetector(patience_s)
        self._from_s = 0.0
        self._noticed = self._done = False

    def started(self, _move: "ReassignmentRun") -> None:
        """Start the clock of the grace time: the first lags are not those of a stall."""
        self._from_s = time.monotonic() + FIRST_LAG_S

    def on_poll(self, move: "ReassignmentRun", poll: Poll) -> None:
        """Raise the throttle once the lag has not fallen for the patience."""
        lag = move.recorder.latest(DRIVER, "move.lag")
        if self._done or lag is None or time.monotonic() < self._from_s:
            return
        stuck = self._detector.look(time.monotonic(), lag, done=poll.in_flight == 0)
        if stuck is not None and not self._noticed:
            self._noticed = True
            move.recorder.event("move.stuck", "move", {"lag": stuck.lag, "seconds": round(stuck.seconds, 3)})
            raised = format_byte_rate(self._raised)
            move.context.progress(f"stuck: the lag has not fallen for {stuck.seconds:.0f} s; raising to {raised}")
            move.recorder.event("move.raised", "move", {"rate_bytes_per_s": self._raised})
        if self._noticed:
            move.change_rate(self._raised)
            self._done = True


class HostByHost(MidMoveAction):
    """The base of actions that take hosts out one after the other, each after a pause in which all brokers served.

    A host that does not come back ends the move. It is not done then, unless something else than Kafka is the cause.
    """

    faults = frozenset({BrokerRestart.kind})
    what: str
    """The name of the action in its events."""
    not_done: str
    """The description of hosts that the action has not taken out."""

    def __init__(self, hosts: Sequence[str], pause_s: float) -> None:
        self._left = list(hosts)
        self._pause_s = pause_s
        self._next_s = 0.0
        self._leaving = ""

    def started(self, _move: "ReassignmentRun") -> None:
        """Start the clock of the first pause."""
        self._next_s = time.monotonic() + self._pause_s

    def on_poll(self, move: "ReassignmentRun", poll: Poll) -> None:
        """Take the next host out when its time has come, and wait until it is in sync.

        Raise `DriverError` when it does not come back.
        """
        if not self._left or not poll.in_flight or time.monotonic() < self._next_s:
            return
        host = self._left[0]
        first, self._leaving = host != self._leaving, host  # the next poll repeats a request without an answer
        try:
            detail = self.take_out(move, host, first)
            _wait_in_sync(move, host)
        except UnreachableError:
            raise  # the next poll requests it again
        except TestbedError as error:
            self._end(move, host, error)
        self._left.pop(0)
        self._next_s = time.monotonic() + self._pause_s
        move.recorder.event(
            "broker.back", self.what, {"leaders_as_planned": move.environment.led_as_planned(), **detail}, host=host
        )

    def take_out(self, move: "ReassignmentRun", host: str, first: bool) -> dict[str, str]:
        """Take a host out, for the `first` time or again, and start Kafka there. Return details of its event."""
        raise NotImplementedError

    def described(self, host: str) -> str:
        """Return what the action does to a host, for the reason of a failure."""
        return f"the {self.what} of {host}"

    def give_back(self, _move: "ReassignmentRun", _host: str) -> str:
        """Give a host that does not come back what it had before; return the end of the reason."""
        return ""

    def _end(self, move: "ReassignmentRun", host: str, error: TestbedError) -> NoReturn:
        """Record that a host did not come back, and raise why: `DriverError` where Kafka may be the cause.

        Another class ends the run, which is inconclusive then: software or the engine is gone, the host does not
        answer, or an error is this machine's own, such as a lock that another command has.
        """
        causes = tuple(_causes(error))
        detail = {"why": str(error), "late": any(isinstance(each, WaitTimeout) for each in causes)}
        move.recorder.event(f"{self.what}.failed", self.what, detail, host=host)
        unseen = _no_answer(move.testbed, host)
        failed = f"{self.described(host)} failed: {error}{self.give_back(move, host)}"
        for each in causes:
            if isinstance(each, SoftwareError | EngineGone | NotWhole):
                raise each
        own = not all(isinstance(each, TestbedError) for each in causes)
        if unseen or (own and not any(isinstance(each, KafkaError) for each in causes)):
            raise TestbedError(f"{failed}; {host} does not answer: {unseen}" if unseen else failed) from error
        raise DriverError(failed) from error

    def missing(self) -> str:
        """Return the hosts that were not taken out."""
        return f"{self.not_done}: {', '.join(self._left)}" if self._left else ""


class RollingRestart(HostByHost):
    """An action that restarts brokers one after the other, each after a pause in which all brokers served."""

    no_model = "brokers were restarted: how long nothing was copied is not modelled"
    what, not_done = "restart", "not restarted"

    def take_out(self, move: "ReassignmentRun", host: str, first: bool) -> dict[str, str]:
        """Restart a broker."""
        move.context.progress(f"restarting {host}")
        if first:
            move.recorder.event("broker.leaving", self.what, host=host)
        with Faults(move.testbed).injected(BrokerRestart(host=host)):
            pass  # entering restarts the broker and waits for its answer; leaving waits until every broker serves
        return {}


class SourceKill(MidMoveAction):
    """An action that kills the broker that gives its partitions away, as soon as the controller accepted the move."""

    no_model = "its source is killed"
    faults = frozenset({BrokerKill.kind})

    def __init__(self, host: str) -> None:
        self._host = host
        self._fault: int | None = None

    def check(self, topology: Topology) -> None:
        """See `MidMoveAction.check`: controllers without a majority elect no new leader."""
        remain = [host for host in topology.controllers if host.name != self._host]
        if 2 * len(remain) <= len(topology.controllers):
            raise UsageError(
                f"the run kills {self._host}, and without it {topology.name} has no majority of controllers: take a "
                "topology whose second broker is no controller, such as automq"
            )

    @contextmanager
    def around(self, move: "ReassignmentRun") -> Iterator[None]:
        """Start the broker again at the end."""
        try:
            yield
        finally:
            if self._fault is not None:
                Faults(move.testbed).clear(self._fault)
                self._fault = None

    def started(self, move: "ReassignmentRun") -> None:
        """Kill the broker, and note when it was dead: what it closed, it closed before."""
        move.recorder.event("broker.killed", "the source of the move", host=self._host)
        self._fault = Faults(move.testbed).add(BrokerKill(host=self._host))
        self.killed_us = now_us()


class SlowNic(MidMoveAction):
    """An action that slows a host's NIC below its declared rate, as a NIC that negotiated a lower rate."""

    no_model = "the NIC binds, not the quota"
    faults = frozenset({NicRate.kind})

    def __init__(self, host: str, rate_bps: int) -> None:
        self._fault = NicRate(host=host, rate=rate_bps)
        self.slowest_bytes_per_s = int(payload_bytes_per_s(rate_bps))

    @contextmanager
    def around(self, move: "ReassignmentRun") -> Iterator[None]:
        """Slow the NIC within the block."""
        move.context.progress(f"slowing the NIC of {self._fault.host} to {format_bit_rate(self._fault.rate)}")
        with Faults(move.testbed).injected(self._fault):
            yield

    def measured_topology(self, topology: Topology) -> Topology:
        """Return the topology with the slow NIC. Raise `UsageError` for a NIC that is as slow already."""
        self._fault.check(topology)
        return self._fault.reshaped(topology)


class Upgrade(HostByHost):
    """An action that upgrades hosts to another Kafka, each after a pause in which all brokers served.

    A host that does not serve with the new version gets its old version back, so that the audit can read every record.
    The move then counts as incomplete. With `down`, all hosts are upgraded before the measurement, and the action takes
    them back to their own version: Kafka allows this as long as the new version's features are not finalized.
    """

    no_model = "brokers were upgraded: how long nothing was copied is not modelled"
    what, not_done = "upgrade", "not upgraded"

    def __init__(
        self, hosts: Sequence[str], to: str, pause_s: float, finalize: bool = False, down: bool = False
    ) -> None:
        super().__init__(hosts, pause_s)
        self._to, self._finalize, self._down = to, finalize, down
        self._before = ""

    def measured_topology(self, topology: Topology) -> Topology:
        """Return the topology. Raise `UsageError` for machines that exist: they have one release."""
        if topology.exists:
            raise UsageError(f"{topology.name} is on machines that exist, which have one release: give to={SAME}")
        return topology

    @contextmanager
    def around(self, move: "ReassignmentRun") -> Iterator[None]:
        """Prepare the new version before any measurement.

        Raise `UsageError` when it cannot join, or a host runs it already, and `SoftwareError` when its path is gone.
        """
        move.context.progress(f"preparing Kafka {self._to}")
        try:
            release = move.testbed.software.kafka(self._to)
        except UsageError as error:
            # Without the path no run would have begun. This one keeps its samples.
            raise SoftwareError(f"{error}; it was there when the run began: put it back, and run again") from error
        state, software = move.testbed.state, move.testbed.software
        self._require_possible(
            release.version, state.kafka, move.admin.features(), lambda version: software.kafka(version).features
        )
        move.recorder.event("upgrade.prepared", release.version, {"digest": release.digest})
        self._to = release.version  # a path may have another build when the next host is upgraded
        if self._down:
            own = state.kafka[self._left[0]]
            rolling_upgrade(move.testbed, self._to, self._left, False, progress=move.context.progress)
            self._to = own
        yield

    def check_kafka(self, topology: Topology, testbed: "Testbed | None") -> None:
        """See `MidMoveAction.check_kafka`: the other Kafka must be able to join the cluster."""
        version = kafka_release(self._to).version
        if testbed is not None:
            with testbed.admin() as admin:
                self._require_possible(version, testbed.state.kafka, admin.features(), _levels)
            return
        declared = {host.name: host.kafka_version for host in topology.hosts if host.kafka_version}
        versions = {source: kafka_release(source).version for source in set(declared.values())}
        levels = {each: _levels(each) for each in versions.values()}
        kafka = {host: versions[source] for host, source in declared.items()}
        self._require_possible(version, kafka, levels[lowest(levels)], _levels)

    def _require_possible(
        self,
        version: str,
        kafka: Mapping[str, str],
        finalized: Mapping[str, int],
        levels: Callable[[str], Mapping[str, int]],
    ) -> None:
        """Raise `UsageError` when hosts with these Kafkas cannot be brought to `version`.

        `finalized` are the features of the cluster, `levels` returns those of a version.
        """
        own = ", ".join(sorted(set(kafka.values())))
        if wrong := cannot_join(finalized, levels(version)):
            raise UsageError(
                f"to={self._to}: {version} is no upgrade of {own}: {wrong}; begin with an older Kafka. A downgrade "
                f"begins with {version} and has the newer one in `to`, with direction=down"
            )
        if there := [host for host in self._left if kafka[host] == version]:
            raise UsageError(
                f"Kafka {version} runs on {', '.join(there)} already, and would not be restarted there: "
                f"begin with another Kafka, or give to={SAME} for mere restarts"
            )
        if self._down and "," in own:
            raise UsageError(f"direction=down: the hosts run {own}; all must run one version")
        stay = [host for host in kafka if self._finalize and host not in self._left]
        if lacking := [host for host in stay if cannot_join(levels(version), levels(kafka[host]))]:
            raise UsageError(
                f"finalize=yes: {', '.join(lacking)} would stay at Kafka {kafka[lacking[0]]}, which lacks features of "
                f"{version}: take a topology whose controllers are brokers, or leave finalize out"
            )

    def take_out(self, move: "ReassignmentRun", host: str, first: bool) -> dict[str, str]:
        """Upgrade a host."""
        testbed = move.testbed
        if first:
            # A request without an answer is repeated, and the host may have the new version by then.
            self._before = testbed.state.kafka[host]
            move.recorder.event("broker.leaving", self.what, {"to": self._to}, host=host)
        rolling_upgrade(testbed, self._to, [host], self._finalizes, progress=move.context.progress)
        return {"before": self._before, "after": testbed.state.kafka[host]}

    def described(self, host: str) -> str:
        """See `HostByHost.described`."""
        return f"the upgrade of {host} to Kafka {self._to}"

    def give_back(self, move: "ReassignmentRun", host: str) -> str:
        """Start the old version on a host. Return that it does not start either, and which Kafka each host has."""
        testbed, progress = move.testbed, move.context.progress
        progress(f"{host} did not come back with Kafka {self._to}: starting Kafka {self._before} there")
        try:
            if testbed.state.kafka[host] != self._before and not self._finalizes:  # what is finalized stays
                # It may run and not serve: `rolling_upgrade` starts a node that is down, and waits for others.
                testbed.node(host).kill()
            rolling_upgrade(testbed, self._before, [host], False, progress=progress)
        except UnreachableError:
            raise
        except TestbedError as error:
            return f"; nor did it come back with Kafka {self._before}: {error}{_mixed(testbed)}"
        return _mixed(testbed)

    @property
    def _finalizes(self) -> bool:
        """Return whether the next host is the last one, with which the features are finalized."""
        return self._finalize and len(self._left) == 1


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on."""
    while error is not None:
        yield error
        error = error.__cause__


def _no_answer(testbed: "Testbed", host: str) -> str:
    """Return why a host does not answer; empty when it does, whether Kafka runs there or not."""
    try:
        testbed.node(host).pid()
    except TestbedError as error:
        return str(error)
    return ""


def _levels(version: str) -> Mapping[str, int]:
    """Return the feature levels of a new cluster of a Kafka that is in the cache, or is fetched."""
    return levels_of(kafka_release(version))


def _mixed(testbed: "Testbed") -> str:
    """Return which Kafka each host has, for the end of a reason; empty where all have the same."""
    kafka = testbed.state.kafka
    hosts = ", ".join(f"{host} Kafka {version}" for host, version in kafka.items())
    return f"; the hosts have different versions now: {hosts}" if len(set(kafka.values())) > 1 else ""
