"""A testbed: the running and reachable hosts of a topology."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.defects import agent
from testbed.defects.parse import in_words
from testbed.errors import TestbedError
from testbed.extras import require_extra
from testbed.hosts import Daemon, Shell, SshHost
from testbed.kafka.admin import Admin
from testbed.kafka.node import Node, bootstrap_servers, driver_servers
from testbed.network.addresses import AddressPlan
from testbed.network.apply import FABRIC, Place, shaping_differences, shell_of
from testbed.network.kernel import lacking_capabilities
from testbed.network.measure import LinkDirection, LinkRate, measure, measure_uplinks
from testbed.network.namespaces import network_of
from testbed.network.overlay import HERE, fabric_place, machines_of
from testbed.network.shaping_watch import ShapingWatch
from testbed.objectstore import ObjectStore
from testbed.owner import Owner
from testbed.provision import kafka_nodes, membership
from testbed.provision import state as states
from testbed.provision.container_provider import ContainerProvider
from testbed.provision.containers import Engine
from testbed.provision.copied_files import CopiedFiles
from testbed.provision.engines import EngineGroup, on_each
from testbed.provision.fleet import engine_of, engine_of_state, pinned_keys
from testbed.provision.inventory.provider import InventoryProvider
from testbed.provision.liveness import NotWhole, explained, why_not_whole
from testbed.provision.machine import without_cpu_limits
from testbed.provision.plan import ClusterIdentity, Equipment
from testbed.provision.provider import Progress
from testbed.provision.resources import remove, require_name
from testbed.provision.software import KafkaSoftware, SoftwareSet
from testbed.provision.state import NO_SLOT, TestbedState, ssh_hosts
from testbed.software.jvm import with_flag, with_jvm
from testbed.topology import Topology, load_document
from testbed.topology.find import find
from testbed.topology.host import DeclaredHost

Provider = ContainerProvider | InventoryProvider
"""Where the hosts of a testbed come from; both have the same methods, and the testbed's own code uses no others."""
MANAGER = "remote-storage-manager"
"""The name, among a testbed's digests, of the brokers' remote storage manager."""


def software_set(
    topology: Topology, digests: Mapping[str, str], builds: Mapping[str, str] | None = None
) -> SoftwareSet:
    """Return the software of a testbed with these digests; machines that exist have no image."""
    return SoftwareSet(image=not topology.exists, manager=digests.get(MANAGER, ""), builds=builds)


def provider_of(
    topology: Topology, engine: Engine, software: SoftwareSet, equipment: Equipment | None = None
) -> Provider:
    """Return where the hosts of a topology come from; `equipment` is for containers only."""
    if topology.exists:
        return InventoryProvider(topology, software)
    return ContainerProvider(engine, topology, software, equipment)


EndNote = Callable[[str, str], None]
"""A callback with a host and a signal, such as `KILL`."""


def note_nothing(_host: str, _signal: str) -> None:
    """Note no end of a process: no run is under way."""


class Testbed:
    """A running testbed. `up` makes one, `attach` finds an existing one, `down` removes it.

    As a context manager it removes itself at the end of the block, also after an error, if `up` made it. A testbed that
    was up before stays up.
    """

    __test__ = False

    def __init__(self, state: TestbedState, engine: Engine, software: SoftwareSet | None = None) -> None:
        self.engine = engine
        self.hosts: Mapping[str, SshHost] = {}
        self.become(state)
        self.software = software or software_set(self.topology, state.digests)
        self.provider = provider_of(self.topology, engine, self.software)
        self._made_here = False
        self.ending: EndNote = note_nothing
        """Called just before this object ends Kafka's process on a host."""

    def become(self, state: TestbedState) -> None:
        """Take over a state: its topology, addresses and hosts. Connections to hosts that stay remain."""
        kept = {
            name: host
            for name, host in self.hosts.items()
            if name in state.host_keys and state.host_keys[name] == self.state.host_keys.get(name)
        }
        self.state: TestbedState = state
        self.topology: Topology = replace(load_document(dict(state.topology)), places=state.places)
        self.plan: AddressPlan = states.address_plan(state, self.topology)
        self.hosts = {**ssh_hosts(state, self.topology, self.plan), **kept}

    def record(self, state: TestbedState) -> None:
        """Take over a state of the same hosts, and save it."""
        self.state = state
        states.save(state)

    # ---- making and finding

    @classmethod
    def up(
        cls,
        topology: Topology | str | Path,
        *,
        name: str | None = None,
        overlay: Mapping[str, str] | None = None,
        defects: Mapping[str, tuple[str, ...]] | None = None,
        ephemeral: bool = False,
        equipment: Equipment | None = None,
        builds: Mapping[str, str] | None = None,
        progress: Progress = lambda _text: None,
    ) -> Self:
        """Provision `topology` (also a file, or the name of a ready topology) and return it, serving.

        A testbed that is up already is not changed; one with another topology, `overlay` or `defects` is an error.
        `overlay` replaces broker properties of the topology. `defects` are the defects of each host, as
        `testbed.defects.by_host` returns them; without it no broker is broken. An `ephemeral` testbed is garbage once
        this process is dead. `equipment` is for hosts that are all clients. `builds` are those of `builds_of`. Raise
        `TestbedError` on failure; nothing is left behind then.
        """
        topology = topology if isinstance(topology, Topology) else find(str(topology))
        name = states.check_name(name or topology.name)
        with states.lock(name):
            known = states.load(name)
            engine = engine_of_state(known)
            ended = known.interrupted if known is not None else ""
            if known is not None and known.status == "up" and not cls(known, engine).provider.runs(known):
                ended = why_not_whole(engine, known)
            elif known is not None and known.status == "up":
                there = known.half_changed
                if not there and known.topology_digest != topology.digest():
                    there = "another topology"
                if not there and defects is not None and dict(defects) != dict(known.defects):
                    there = "; ".join(in_words(known.defects)) or "no defect"
                if not there and overlay is not None and dict(overlay) != dict(known.overlay):
                    there = "other broker properties"
                if there:
                    raise TestbedError(
                        f"testbed {name} is up with {there}; `testbed down {name}` first, "
                        "or give this one another name with --name"
                    )
                found = cls(known, engine)
                found._require_whole()
                return found
            if not topology.exists:
                require_name(engine.members[HERE], name)
            if known is not None:
                progress(f"removing what is left of {name}: {ended}")
                remove(engine, name, own=True)  # another state folder may have the name on the engine
            return cls._make(
                engine, topology, name, dict(overlay or {}), dict(defects or {}), ephemeral, progress, equipment, builds
            )

    @classmethod
    def _make(
        cls,
        engine: Engine,
        topology: Topology,
        name: str,
        overlay: Mapping[str, str],
        defects: Mapping[str, tuple[str, ...]],
        ephemeral: bool,
        progress: Progress,
        equipment: Equipment | None = None,
        builds: Mapping[str, str] | None = None,
    ) -> Self:
        # Missing features of the machines or the software are found before anything is made.
        if topology.objectstores:
            require_extra("boto3")
        keys = pinned_keys(topology.machines)
        if keys:
            engine = engine_of(topology.machines, keys)
        software = software_set(topology, {}, builds)
        provider = provider_of(topology, engine, software, equipment)
        required = provider.require(name, progress)
        kafka = software.of(topology)
        if kafka:
            software.lowest(kafka.values())
        digests = {**required.digests, **{v: software.kafka(v).digest for v in set(kafka.values())}}
        if topology.objectstores:
            digests["minio"] = software.minio(progress).digest
        if topology.remote_storage is not None:
            digests[MANAGER] = software.manager(topology.remote_storage, progress).digest
        if defects:
            kafka_nodes.require_breakable(software, kafka, defects)
            digests["defects"] = agent.PROJECT.digest()
        identity = ClusterIdentity.generate(topology)
        try:
            state = TestbedState(
                name=name,
                status="creating",
                slot=NO_SLOT,
                topology=topology.to_document(),
                topology_digest=topology.digest(),
                owner=str(Owner.this_process()),
                ephemeral=ephemeral,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                cluster_id=identity.cluster_id,
                kafka=kafka,
                overlay=overlay,
                host_keys={host: key.public for host, key in identity.host_keys.items()},
                digests=digests,
                defects=defects,
                machines=required.machines,
                machine_keys=keys,
            )
            # Before the first request: after a kill, `remove` finds by this state the resources still being made.
            states.save(state)
            state = provider.allocate(state)
            states.save(state)
            states.write_key(name, identity.login)
            if identity.store is not None:
                states.write_credentials(name, identity.store)
            testbed = cls(state, engine, software)
            testbed.provider = provider
            testbed._made_here = True
            with explained(engine, state, "what was made is removed; bring it up again"):
                provider.make(testbed, identity, progress)
                if topology.objectstores:
                    # The folders that a broker writes to exist before it starts.
                    testbed.objectstore.start(progress=progress)
                kafka_nodes.install_defects(testbed)
                if kafka:
                    testbed.start_kafka(progress=progress)
            testbed.record(replace(state, status="up"))
        except BaseException as error:
            # Also on Ctrl-C. A kill -9 cannot be caught: `down` and `gc` find its remains by the labels.
            progress("failed: removing what was made")
            try:
                # Another state folder may have taken the name meanwhile.
                remove(engine, name, own=True)
            except TestbedError as another:
                first = str(error) or "interrupted"
                raise TestbedError(f"{first}; and `testbed down {name}` is needed: {another}") from error
            raise
        return testbed

    @classmethod
    def attach(cls, name: str, *, whole: bool = True) -> Self:
        """Return a testbed that is up. Raise `TestbedError` when none has that name, or when it is not whole.

        Without `whole`, also return a testbed whose containers have ended: `status` reports its remains.
        """
        known = states.load(states.check_name(name))
        if known is None:
            up = ", ".join(states.names()) or "none"
            raise TestbedError(
                f"there is no testbed {name}; up are: {up}. `testbed up TOPOLOGY --name {name}` makes one"
            )
        if known.status != "up":
            with states.lock(name):
                pass  # held by an `up` or a `down` that goes on: another error says so
            raise TestbedError(
                f"testbed {name} is not up: {known.interrupted}. `testbed down {name}` removes what is left"
            )
        testbed = cls(known, engine_of_state(known))
        if whole:
            testbed._require_whole()
        return testbed

    def _require_whole(self) -> None:
        if why := why_not_whole(self.engine, self.state):
            raise NotWhole(self.state, why)

    # ---- using

    @property
    def name(self) -> str:
        """Return the testbed's name."""
        return self.state.name

    @property
    def bootstrap(self) -> tuple[str, ...]:
        """Return the brokers' client addresses."""
        return bootstrap_servers(self.topology, self.plan)

    @property
    def driver_bootstrap(self) -> tuple[str, ...]:
        """Return the brokers' addresses for preloads and audits, which no shaped NIC slows down.

        A load and an administrator use `bootstrap`: their traffic passes the shaped NICs.
        """
        return driver_servers(self.topology, self.plan)

    @property
    def kafka_versions(self) -> Mapping[str, str]:
        """Return host → the version of Kafka that it runs now."""
        return self.state.kafka

    @property
    def machine_shells(self) -> Mapping[str, SshHost]:
        """Return a shell as root on each other machine; empty where this machine has all hosts."""
        return self.hosts if self.topology.exists else self.engine.shells

    def copy_software(self, software: KafkaSoftware) -> None:
        """Copy a Kafka to every other machine, for hosts that run already; do nothing on one machine."""
        if isinstance(self.engine, EngineGroup):
            copied = CopiedFiles(self.engine, software.artefacts)
            on_each(self.engine.shells, copied.add)

    def fabrics(self) -> dict[str, Shell]:
        """Return a shell in the fabric of each machine; the name of the machine of the testbed is empty.

        Machines that exist have no fabric.
        """
        places = self.places()
        return {
            name: shell_of(FABRIC, places[place])
            for name in machines_of(self.topology)
            if (place := fabric_place(name)) in places
        }

    def pids(self) -> tuple[int, dict[str, int]]:
        """Return the machine's process numbers of the fabric and of each host; without hosts on other machines."""
        found = self.engine.members[HERE].containers(self.state.name)
        pids = {each.host: self.engine.members[HERE].pid(each.id) for each in found if each.role in ("host", "fabric")}
        return pids.pop(""), pids

    def places(self) -> Mapping[str, Place]:
        """Return the network namespace of each host that runs, and of the fabric (``FABRIC``) if there is one."""
        return self.provider.places(self)

    def watch_shaping(self) -> ShapingWatch:
        """Return a watch of every change of the traffic control of all places."""
        return self.provider.watch_shaping(self)

    def client_networks(self) -> dict[str, tuple[str, ...]]:
        """Return client host → the words that run a command of this machine behind that host's NIC.

        Hosts on other machines have none, and without root no host has: clients use this machine's network then.
        """
        if not self.topology.clients or lacking_capabilities():
            return {}
        places = self.places()
        found = {host.name: places[host.name] for host in self.topology.clients}
        return {name: network_of(place) for name, place in found.items() if isinstance(place, int)}

    def nics(
        self, only: Collection[LinkDirection] | None = None, *, topology: Topology | None = None
    ) -> tuple[LinkRate, ...]:
        """Measure every NIC each way (or `only` these) and return the rates; 2 s for each transfer, one at a time.

        While faults are active, `topology` has the NICs' present shaping; otherwise it is the testbed's.
        """
        # A host's CPU limit must not limit the measured rate of its NIC.
        with without_cpu_limits(self.engine, self.name, self.topology.hosts):
            wanted = topology or self.topology
            return measure(wanted, self.plan, self.hosts, self.fabrics(), only, mtu=self.state.mtu)

    def uplinks(self) -> tuple[LinkRate, ...]:
        """Measure every shaped uplink each way and return the rates; 2 s each, with all NICs of its rack."""
        return measure_uplinks(self.topology, self.plan, self.hosts, self.fabrics(), mtu=self.state.mtu)

    def shaping_differences(self) -> list[str]:
        """Return the differences between the kernel's shaping and the declared shaping; empty without any."""
        return shaping_differences(self.topology, self.places())

    def node(self, host: str) -> Node:
        """Return the Kafka node of a host."""
        version = self.state.kafka.get(host)
        if version is None:
            raise TestbedError(f"{host} runs no Kafka: its role is {self.topology.host(host).role.value}")
        declared, defects = self.topology.host(host).jvm, self.state.defects.get(host)
        command = with_jvm(self.software.kafka(version).command, declared.heap_bytes, declared.gc, declared.flags)
        if (relocation := self.hosts[host].relocation) is not None:
            # The machine's own /tmp stays as it is, also when the broker is killed.
            command = with_flag(command, f"-Djava.io.tmpdir={relocation.home}/tmp")
        command = with_flag(command, agent.agent_flag(defects)) if defects else command
        return Node(self.hosts[host], command, partial(self.ending, host))

    @property
    def objectstore(self) -> ObjectStore:
        """Return the object store. Raise `TestbedError` when the topology has none."""
        if not self.topology.objectstores:
            raise TestbedError(f"{self.topology.name} has no object store: no host has the role objectstore")
        return ObjectStore(self.topology, self.plan, self.hosts, states.load_credentials(self.name))

    def daemon(self, host: str) -> Daemon | None:
        """Return the server process of a host, Kafka's or the object store's; None on a host for load."""
        role = self.topology.host(host).role
        if role.runs_kafka:
            return self.node(host)
        return self.objectstore.server(host) if role.stores_data else None

    def admin(self, *, timeout_s: float = 10.0) -> Admin:
        """Return a new admin client; the caller closes it."""
        return Admin(self.bootstrap, timeout_s=timeout_s)

    def start_kafka(self, *, timeout_s: float | None = None, progress: Progress = lambda _text: None) -> None:
        """Start every Kafka node that does not run, and wait until all brokers are unfenced.

        Wait at most `timeout_s`; with None, as long as their release may take. Raise `KafkaStuck` otherwise.
        """
        kafka_nodes.start_kafka(self, timeout_s=timeout_s, progress=progress)

    def wait_serving(self, *, timeout_s: float = 90.0) -> None:
        """Wait until every node answers itself and every broker is unfenced.

        Raise `KafkaStuck` otherwise, and at once when a node's process died.
        """
        kafka_nodes.wait_serving(self, timeout_s=timeout_s)

    def is_configured(
        self, overlay: Mapping[str, str], *, defects: Mapping[str, tuple[str, ...]] | None = None
    ) -> bool:
        """Return whether `reconfigure` with these would restart nothing."""
        return kafka_nodes.is_configured(self, overlay, self.state.defects if defects is None else defects)

    def reconfigure(
        self,
        overlay: Mapping[str, str],
        *,
        defects: Mapping[str, tuple[str, ...]] | None = None,
        progress: Progress = lambda _text: None,
    ) -> None:
        """Make `overlay` the brokers' properties over the topology's; restart Kafka when they differ.

        Also make `defects` the defects of each host; with None they stay. Raise `TestbedError` while another command
        changes the testbed.
        """
        with membership.changing(self):
            kafka_nodes.reconfigure(self, overlay, self.state.defects if defects is None else defects, progress)

    def add_host(
        self,
        host: DeclaredHost | str,
        *,
        like: str = "",
        step: Callable[[str], None] = lambda _name: None,
        progress: Progress = lambda _text: None,
    ) -> DeclaredHost:
        """Provision one more broker (or client) while the testbed is up; return it once it serves.

        `host` is a declaration, or the name of a broker that is like the broker `like` (empty: the last one). `step`
        is called with `provisioned`, `started` and `registered`. Raise an error on failure; the testbed is then as
        before.
        """
        if isinstance(host, str):
            host = membership.joining(self.topology, host, like or self.topology.brokers[-1].name)
        membership.add_host(self, host, step, progress)
        return host

    def remove_host(
        self, name: str, *, step: Callable[[str], None] = lambda _name: None, progress: Progress = lambda _text: None
    ) -> None:
        """Stop a broker that has no replicas, unregister it, and remove its container; or remove a client.

        `step` is called with `stopped`, `unregistered` and `removed`. Raise `UsageError` for a host that must stay,
        and `TestbedError` when it has replicas; nothing is changed then. A broker that does not stop is
        started again.
        """
        membership.remove_host(self, name, step, progress)

    # ---- leaving

    def __enter__(self) -> Self:
        if self._made_here:
            # From here on the block owns it: it is garbage once this process is dead.
            self.record(replace(self.state, ephemeral=True))
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            if self._made_here:
                self.down()
        finally:
            self.close()

    def close(self) -> None:
        """Close all connections; the testbed stays up."""
        for host in self.hosts.values():
            host.close()
        self.engine.close()

    def down(self) -> None:
        """Remove the testbed and all its resources."""
        for host in self.hosts.values():
            host.close()
        with states.lock(self.name, wait=True):
            remove(self.engine, self.name)
