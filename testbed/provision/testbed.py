"""A testbed: the hosts of a topology, up and reachable."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from testbed.errors import TestbedError
from testbed.hosts import SshHost
from testbed.hosts.namespace import NamespaceShell
from testbed.hosts.ssh import SshAddress
from testbed.kafka.admin import Admin
from testbed.kafka.node import Node
from testbed.kafka.properties import bootstrap_servers, server_properties
from testbed.network.addresses import AddressPlan
from testbed.network.measure import NicRate, measure
from testbed.owner import Owner
from testbed.provision import state as states
from testbed.provision.allocate import allocate
from testbed.provision.containers import Engine
from testbed.provision.labels import Labels
from testbed.provision.plan import Identity, host_spec
from testbed.provision.remove import remove
from testbed.provision.shaping import differences, make_fabric
from testbed.provision.software import SoftwareSet
from testbed.provision.state import TestbedState
from testbed.topology import Topology, load_document
from testbed.wait import wait_for

Progress = Callable[[str], None]
T = TypeVar("T")


def each(items: Iterable[T], work: Callable[[T], object]) -> None:
    """Do `work` for all items at once; the first failure is raised after all have ended."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        futures = [pool.submit(work, item) for item in items]
    for future in futures:
        future.result()


class Testbed:
    """A running testbed. Make one with `up`, find one again with `attach`, remove it with `down`."""

    __test__ = False

    def __init__(self, state: TestbedState, engine: Engine, software: SoftwareSet | None = None) -> None:
        self.state = state
        self.engine = engine
        self.topology: Topology = load_document(dict(state.topology))
        self.plan = AddressPlan(state.slot, tuple(host.name for host in self.topology.hosts))
        self.hosts: Mapping[str, SshHost] = {
            host.name: SshHost(
                host.name,
                SshAddress(
                    host=str(self.plan.management_ip(host.name)),
                    port=22,
                    user="root",
                    private_key=states.private_key_path(state.name),
                    host_key=state.host_keys[host.name],
                ),
            )
            for host in self.topology.hosts
        }
        self._software = software or SoftwareSet()

    # ---- making and finding

    @classmethod
    def up(
        cls,
        topology: Topology,
        *,
        name: str | None = None,
        overlay: Mapping[str, str] | None = None,
        ephemeral: bool = False,
        progress: Progress = lambda _text: None,
    ) -> "Testbed":
        """Bring `topology` up: shaped, unfenced and serving. What is up already is left as it is.

        `overlay` is broker properties over the topology's. An `ephemeral` testbed is garbage once this process is
        dead. Whatever fails, nothing is left behind; raises `TestbedError`.
        """
        name = states.check_name(name or topology.name)
        with states.lock(name):
            known = states.load(name)
            engine = Engine()
            if known is not None and known.status == "up":
                found = cls(known, engine)
                if known.topology_digest != topology.digest():
                    raise TestbedError(
                        f"testbed {name} is up with another topology; `testbed down {name}` first, "
                        "or give this one another name with --name"
                    )
                found._require_whole()
                return found
            if known is not None:
                progress(f"removing what an interrupted `up` of {name} left")
                remove(engine, name)
            return cls._make(engine, topology, name, dict(overlay or {}), ephemeral, progress)

    @classmethod
    def _make(
        cls,
        engine: Engine,
        topology: Topology,
        name: str,
        overlay: Mapping[str, str],
        ephemeral: bool,
        progress: Progress,
    ) -> "Testbed":
        # Software first: what is missing or broken there is found before anything is made.
        software = SoftwareSet()
        kafka = {host.name: host.kafka_version for host in topology.hosts if host.kafka_version}
        for version in sorted(set(kafka.values())):
            software.kafka(version)
        image = software.image
        identity = Identity.generate(topology)
        try:
            labels = allocate(engine, name, image.tag)
            progress(f"addresses {AddressPlan(labels.slot, ()).data}")
            state = TestbedState(
                name=name,
                status="creating",
                slot=labels.slot,
                topology=topology.to_document(),
                topology_digest=topology.digest(),
                owner=str(Owner.this_process()),
                ephemeral=ephemeral,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                cluster_id=identity.cluster_id,
                kafka=kafka,
                overlay=overlay,
                host_keys={host: key.public for host, key in identity.host_keys.items()},
                digests={"image": image.id, **{v: software.kafka(v).digest for v in set(kafka.values())}},
            )
            states.save(state)
            states.write_key(name, identity.login)
            testbed = cls(state, engine, software)
            testbed._make_hosts(identity, image.tag, labels, progress)
            testbed.start_kafka(progress=progress)
            testbed.state = replace(state, status="up")
            states.save(testbed.state)
        except BaseException:
            # Also on Ctrl-C. A kill -9 cannot be caught: `down` and `gc` find what it leaves by the labels.
            progress("failed: removing what was made")
            remove(engine, name)
            raise
        return testbed

    @classmethod
    def attach(cls, name: str) -> "Testbed":
        """A testbed that is up. Raises `TestbedError` when there is none of that name, or it is not whole."""
        known = states.load(states.check_name(name))
        if known is None:
            up = ", ".join(states.names()) or "none"
            raise TestbedError(
                f"there is no testbed {name}; up are: {up}. `testbed up TOPOLOGY --name {name}` makes one"
            )
        testbed = cls(known, Engine())
        if known.status != "up":
            raise TestbedError(
                f"testbed {name} is not up: its `up` was interrupted. `testbed down {name}` removes what it left"
            )
        testbed._require_whole()
        return testbed

    def _require_whole(self) -> None:
        running = {found.host for found in self.engine.containers(self.state.name) if found.running}
        missing = [host.name for host in self.topology.hosts if host.name not in running]
        if missing or "" not in running:
            what = ", ".join(missing or ["the fabric"])
            raise TestbedError(
                f"testbed {self.state.name} is not whole: no running container for {what}; "
                f"`testbed down {self.state.name}` and bring it up again"
            )

    def _make_hosts(self, identity: Identity, image: str, labels: Labels, progress: Progress) -> None:
        def make(host_name: str) -> None:
            host = self.topology.host(host_name)
            software = self._software.kafka(host.kafka_version) if host.kafka_version else None
            self.engine.create(
                host_spec(host, self.topology, self.plan, identity, image, labels, software, self.state.overlay)
            )

        each(self.hosts, make)
        fabric, pids = self.pids()
        make_fabric(self.state.name, self.topology, self.plan, fabric, pids)
        progress(f"{len(pids)} hosts, NICs shaped and read back")

    # ---- using

    @property
    def name(self) -> str:
        """The testbed's name."""
        return self.state.name

    @property
    def bootstrap(self) -> tuple[str, ...]:
        """The brokers' client addresses."""
        return bootstrap_servers(self.topology, self.plan)

    def pids(self) -> tuple[int, dict[str, int]]:
        """A process of the fabric and one of each host, as the machine numbers them."""
        found = self.engine.containers(self.state.name)
        pids = {each.host: self.engine.pid(each.id) for each in found if each.role in ("host", "fabric")}
        return pids.pop(""), pids

    def measure_nics(self) -> tuple[NicRate, ...]:
        """Measure every NIC each way; 2 s for each transfer, one at a time."""
        fabric, _pids = self.pids()
        return measure(self.topology, self.plan, self.hosts, NamespaceShell("fabric", fabric))

    def shaping_differences(self) -> list[str]:
        """Where the kernel's shaping differs from the declared one; empty when it does not."""
        fabric, pids = self.pids()
        return differences(self.topology, fabric, pids)

    def node(self, host: str) -> Node:
        """The Kafka node of a host."""
        version = self.topology.host(host).kafka_version
        if version is None:
            raise TestbedError(f"{host} runs no Kafka: its role is {self.topology.host(host).role.value}")
        return Node(self.hosts[host], self._software.kafka(version).command)

    def admin(self, *, timeout_s: float = 10.0) -> Admin:
        """A new admin client; close it."""
        return Admin(self.bootstrap, timeout_s=timeout_s)

    def start_kafka(self, *, timeout_s: float = 90.0, progress: Progress = lambda _text: None) -> None:
        """Start every Kafka node that does not run, and wait until all brokers are unfenced."""
        kafka = [host.name for host in self.topology.hosts if host.node_id is not None]
        each(kafka, lambda host: self.node(host).start())
        begun = time.monotonic()
        self.wait_serving(timeout_s=timeout_s)
        progress(f"{len(self.topology.brokers)} brokers unfenced after {time.monotonic() - begun:.1f} s")

    def wait_serving(self, *, timeout_s: float = 90.0) -> None:
        """Wait until every broker is unfenced. A broker that died is an error at once, with its log's end."""
        expected = {host.node_id for host in self.topology.brokers}
        waiter = Serving(self)
        wait_for(
            waiter.brokers,
            lambda brokers: brokers >= expected,
            timeout_s=timeout_s,
            interval_s=0.1,
            what=f"brokers {sorted(filter(None, expected))} of {self.name} to be unfenced",
        )

    def reconfigure(self, overlay: Mapping[str, str], *, progress: Progress = lambda _text: None) -> None:
        """Make `overlay` the brokers' properties over the topology's; restarts Kafka when that changes anything."""
        if dict(overlay) == dict(self.state.overlay):
            return
        progress("restarting Kafka with other properties")
        kafka = [host for host in self.topology.hosts if host.node_id is not None]
        for host in kafka:
            self.node(host.name).configure(server_properties(self.topology, host, self.plan, overlay))
        # Brokers first: a controlled shutdown needs the controller.
        each([h.name for h in kafka if not h.is_controller], lambda host: self.node(host).stop())
        each([h.name for h in kafka if h.is_controller], lambda host: self.node(host).stop())
        self.state = replace(self.state, overlay=dict(overlay))
        states.save(self.state)
        self.start_kafka(progress=progress)

    # ---- leaving

    def close(self) -> None:
        """Let go of all connections; the testbed stays up."""
        for host in self.hosts.values():
            host.close()
        self.engine.close()

    def down(self) -> None:
        """Remove the testbed and everything that belongs to it."""
        for host in self.hosts.values():
            host.close()
        with states.lock(self.name, wait=True):
            remove(self.engine, self.name)


class Serving:
    """Asks a starting cluster which brokers are unfenced, and notices when a node has died instead."""

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed

    def brokers(self) -> set[int | None]:
        """The node ids of the unfenced brokers; empty while nobody answers."""
        try:
            with self._testbed.admin(timeout_s=2.0) as admin:
                return {broker.id for broker in admin.cluster().brokers}
        except TestbedError:
            self._check_alive()
            return set()

    def _check_alive(self) -> None:
        for host in self._testbed.topology.hosts:
            if host.node_id is None:
                continue
            node = self._testbed.node(host.name)
            if node.pid() is None:
                raise TestbedError(f"Kafka on {host.name} ended while starting; the end of its log:\n{node.log_tail()}")
