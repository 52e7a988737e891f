"""Hosts that join and leave a testbed while it is up.

The state names a host that is being added or removed before anything is made, so that `down` and a later command know
of it after a kill. All other hosts keep their numbers, and with them their addresses and ports.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from results.contract.texts import shortened
from testbed.errors import KafkaStuck, TestbedError, UsageError
from testbed.hosts.host import in_parallel
from testbed.kafka.admin import Admin
from testbed.kafka.capabilities import Capability, of_software
from testbed.kafka.errors import BROKER_NOT_REGISTERED, KafkaError
from testbed.network.apply import FABRIC, add_links, remove_links
from testbed.owner import Owner, is_dead
from testbed.paths import state_dir
from testbed.provision import kafka_nodes
from testbed.provision import state as states
from testbed.provision.container_provider import host_container
from testbed.provision.containers import Labels
from testbed.provision.machine import remove_disks, require_cpus, require_machine
from testbed.provision.plan import ClusterIdentity, nic_names
from testbed.provision.state import KeyPair
from testbed.suggestions import did_you_mean
from testbed.topology.host import DeclaredHost, Role
from testbed.topology.model import Topology
from testbed.wait import WaitTimeout, wait_for

if TYPE_CHECKING:
    from testbed.provision.provider import Progress
    from testbed.provision.testbed import Testbed

Step = Callable[[str], None]
"""A callback with the name of each step that has ended."""
PROVISIONED, STARTED, REGISTERED = "provisioned", "started", "registered"
STOPPED, UNREGISTERED, REMOVED = "stopped", "unregistered", "removed"
_SHOWN = 5
_LOOK_S = 0.1


def joining(topology: Topology, name: str, like: str) -> DeclaredHost:
    """Return the declaration of a broker that joins: that of the broker `like`, with a new node id. Pure.

    Raise `UsageError` when `like` is no broker, or when the name is in use.
    """
    brokers = {host.name: host for host in topology.brokers}
    if like not in brokers:
        raise UsageError(
            f"{like} is no broker of {topology.name}, only {', '.join(brokers)}{did_you_mean(like, brokers)}"
        )
    if name in {host.name for host in topology.hosts}:
        raise UsageError(f"{topology.name} has a host {name} already; give the new one another name")
    ids = [host.node_id for host in topology.hosts if host.node_id is not None]
    number = topology.by_number.index(name) if name in topology.by_number else len(topology.by_number)
    node_id = next(each for each in (number + 1, *range(1, len(ids) + 2)) if each not in ids)
    return replace(brokers[like], name=name, role=Role.BROKER, node_id=node_id)


def joining_brokers(topology: Topology, count: int) -> tuple[DeclaredHost, ...]:
    """Return the brokers that would join a topology next, each like its last broker. Pure."""
    found: list[DeclaredHost] = []
    for _number in range(count):
        taken = {host.name for host in topology.hosts}
        number = next(n for n in range(1, len(taken) + 2) if f"b{n}" not in taken)
        found.append(joining(topology, f"b{number}", topology.brokers[-1].name))
        topology = topology.with_host(found[-1])
    return tuple(found)


def kafka_of_alike(host: DeclaredHost, topology: Topology, kafka: Mapping[str, str]) -> str | None:
    """Return the Kafka that a host with the same declaration runs now, or None without such a host. Pure.

    `kafka` is the version of each host. A declared path may have another build by now, and an upgrade changes no
    declaration. On shared storage no host declares a version: all run the one that was supplied.
    """
    alike = (each.name for each in topology.hosts if each.kafka_version == host.kafka_version)
    return next((kafka[name] for name in alike if name in kafka), None)


def add_host(testbed: "Testbed", host: DeclaredHost, step: Step, progress: "Progress") -> None:
    """Provision one more broker or client. After an error the testbed is as before."""
    _require_can_join(testbed, host)
    with changing(testbed):
        _require_can_join(testbed, host)
        before = testbed.state
        changed = testbed.topology.with_host(host)
        require_machine(changed)
        _remove_container(testbed, host.name)  # what a killed command left
        key = KeyPair.generate()
        kafka = dict(before.kafka)
        if host.role.runs_kafka:
            version = kafka_of_alike(host, testbed.topology, before.kafka)
            kafka[host.name] = version or testbed.software.kafka(str(host.kafka_version)).version
        started = False
        try:
            _record(testbed, changed, kafka, {**before.host_keys, host.name: key.public}, changing=host.name)
            progress(f"adding {host.name}")
            _make(testbed, host, key)
            step(PROVISIONED)
            if host.role.runs_kafka:
                started = True
                _start(testbed, host.name, step)
            testbed.record(replace(testbed.state, changing={}))
        except BaseException as error:
            progress(f"failed: removing {host.name}")
            try:
                left = _withdraw(testbed, host, registered=started)
            finally:
                # Also where the engine has stopped: the next `add_host` of this name, or `down`, removes the container.
                testbed.become(before)
                states.save(before)
            if left:
                progress(left)
                if isinstance(error, TestbedError):  # Ctrl-C stays Ctrl-C
                    raise TestbedError(f"{error}; and {left}") from error
            raise


def remove_host(testbed: "Testbed", name: str, step: Step, progress: "Progress") -> None:
    """Stop a broker that has no replicas, unregister it and remove its container; or remove a client."""
    require_can_leave(testbed.topology, name, testbed.name)
    with changing(testbed):
        topology = testbed.topology
        host = require_can_leave(topology, name, testbed.name)
        if host.node_id is not None:
            with testbed.admin() as admin:
                _require_drained(admin, host.node_id, name)
        state = testbed.state
        testbed.record(replace(state, changing={name: str(Owner.this_process())}))
        progress(f"removing {name}")
        if host.node_id is not None:
            try:
                testbed.node(name).stop()
                step(STOPPED)
            except BaseException:
                _start_again(testbed, name, progress)
                raise
        shell = testbed.hosts[name]
        kafka = {each: version for each, version in state.kafka.items() if each != name}
        keys = {each: key for each, key in state.host_keys.items() if each != name}
        _record(testbed, topology.without_host(name), kafka, keys, changing=name)
        if host.node_id is not None:
            with testbed.admin() as admin:
                _unregister(admin, host.node_id)
            step(UNREGISTERED)
        shell.close()
        _remove_container(testbed, name)
        step(REMOVED)
        testbed.record(replace(testbed.state, changing={}))


@contextmanager
def changing(testbed: "Testbed") -> Iterator[None]:
    """Lock a testbed for a change of its hosts or their software.

    First take over what other commands changed since it was attached.
    """
    with states.lock(testbed.name):
        saved = states.load(testbed.name)
        if saved is None:
            raise TestbedError(f"testbed {testbed.name} was removed by another command")
        if saved != testbed.state:
            testbed.become(saved)
        yield


def note_own_hosts(testbed: "Testbed") -> None:
    """Record the testbed's hosts before a run of this process changes them: a killed run does not put them back."""
    with changing(testbed):
        if all(map(is_dead, testbed.state.own_hosts.values())):
            own = dict.fromkeys((host.name for host in testbed.topology.hosts), str(Owner.this_process()))
            testbed.record(replace(testbed.state, own_hosts=own))


def forget_own_hosts(testbed: "Testbed") -> None:
    """Record that the testbed has its own hosts again."""
    with changing(testbed):
        testbed.record(replace(testbed.state, own_hosts={}))


def require_whole_change(testbed: "Testbed") -> None:
    """Raise `TestbedError` when hosts of a testbed that is to be measured are not those that a user gave it.

    A killed command was adding or removing them, or a run has not put them back.
    """
    if half := testbed.state.half_changed:
        name = testbed.name
        raise TestbedError(f"testbed {name} has {half}: `testbed down {name}` and `testbed up` make it again")


def _require_can_join(testbed: "Testbed", host: DeclaredHost) -> None:
    if host.role not in (Role.BROKER, Role.CLIENT):
        raise UsageError(f"{host.name} has the role {host.role.value}: only a broker or a client can join")
    if host.name in {each.name for each in testbed.topology.hosts}:
        raise UsageError(f"{testbed.name} has a host {host.name} already")
    require_local(testbed.topology, testbed.name)


def require_can_leave(topology: Topology, name: str, whole: str) -> DeclaredHost:
    """Return the host of this name. Raise `UsageError`, which calls the testbed `whole`, when it cannot leave. Pure."""
    names = [host.name for host in topology.hosts]
    if name not in names:
        raise UsageError(f"{whole} has no host {name}, only {', '.join(names)}{did_you_mean(name, names)}")
    require_local(topology, whole)
    host = topology.host(name)
    if host.role not in (Role.BROKER, Role.CLIENT):
        raise UsageError(f"{name} has the role {host.role.value}: only a broker or a client can leave")
    if host.is_broker and len(topology.brokers) == 1:
        raise UsageError(f"{name} is the only broker of {whole}: `testbed down {whole}` removes all")
    return host


def require_local(topology: Topology, whole: str) -> None:
    """Raise `UsageError`, which calls the testbed `whole`, when its hosts cannot join and leave. Pure."""
    if topology.exists or topology.remote_machines:
        where = "machines that exist" if topology.exists else "several machines"
        raise UsageError(f"{whole} is on {where}: a host can join and leave only on the local engine")


def _record(
    testbed: "Testbed", topology: Topology, kafka: dict[str, str], keys: dict[str, str], *, changing: str
) -> None:
    """Make a topology the testbed's present one, and save that before anything is made or removed."""
    own = testbed.state.own_hosts
    if any(map(is_dead, own.values())) and not testbed.state.half_changed:
        own = {}  # a run that was killed when there was nothing to put back
    state = replace(
        testbed.state,
        own_hosts=own,
        topology=topology.to_document(),
        topology_digest=topology.digest(),
        places=topology.places,
        kafka=kafka,
        host_keys=keys,
        changing={changing: str(Owner.this_process())},
    )
    states.save(state)
    testbed.become(state)


def _make(testbed: "Testbed", host: DeclaredHost, key: KeyPair) -> None:
    """Make a host's container and links, shaped and read back."""
    state, topology, plan = testbed.state, testbed.topology, testbed.plan
    labels = Labels(state.name, state.slot, Owner.this_process(), str(state_dir()))
    store = states.load_credentials(state.name) if topology.objectstores else None
    identity = ClusterIdentity(state.cluster_id, states.load_key(state.name), {host.name: key}, store)
    testbed.engine.create(host_container(testbed, host, labels, identity, testbed.software.image))
    require_cpus(testbed.engine, state.name, [host])
    fabric, pids = testbed.pids()
    add_links(topology, plan, host.name, fabric, pids[host.name])
    names = "".join(f"{address} {name}\n" for name, address in nic_names([host], plan).items())
    others = [each for each in testbed.hosts if each != host.name]
    in_parallel(others, lambda other: testbed.hosts[other].run(["sh", "-c", f"printf '%s' '{names}' >> /etc/hosts"]))


def _start(testbed: "Testbed", name: str, step: Step) -> None:
    testbed.node(name).start()
    step(STARTED)
    try:
        wait_for(
            lambda: kafka_nodes.silent(testbed, [name]),
            lambda found: not found,
            timeout_s=testbed.software.kafka(testbed.state.kafka[name]).start_s,
            interval_s=_LOOK_S,
            what=f"{name} to be registered and to serve",
        )
    except WaitTimeout as error:
        # The log is removed with the container.
        log = testbed.node(name).log_tail()
        raise KafkaStuck(f"{error}; the end of its log:\n{log}") from error
    if Capability.SHARED_STORAGE in of_software(testbed.topology):
        kafka_nodes.require_as_declared(testbed, lambda _text: None)
    step(REGISTERED)


def _withdraw(testbed: "Testbed", host: DeclaredHost, *, registered: bool) -> str:
    """Remove a host that could not join; return what is left of it and why, empty when nothing is.

    With `registered`, its broker was started: the registration that it may have outlives its container.
    """
    if host.name in testbed.hosts:
        testbed.hosts[host.name].close()
    try:
        _remove_container(testbed, host.name)
        if registered and host.node_id is not None:
            with testbed.admin() as admin:
                _unregister(admin, host.node_id)
    except TestbedError as error:
        return f"{host.name} is not wholly removed: {error}; `testbed down {testbed.name}` removes the rest"
    return ""


def _start_again(testbed: "Testbed", name: str, progress: "Progress") -> None:
    """Start a broker that stays, because its removal failed or was interrupted. Report why where that fails."""
    progress(f"failed: starting {name} again")
    try:
        testbed.node(name).kill()  # a shutdown that still lasts would end after the start
        testbed.node(name).start()
        testbed.record(replace(testbed.state, changing={}))
    except TestbedError as error:
        progress(f"{name} was not started again: {error}")


def _require_drained(admin: Admin, node_id: int, name: str) -> None:
    held = [tp for tp, state in admin.partitions(admin.topics()).items() if node_id in state.replicas]
    if held:
        some = ", ".join(shortened(held, _SHOWN))
        raise TestbedError(
            f"{name} has {len(held)} replicas, {some}: move them to other brokers first, or their data would be lost"
        )


def _unregister(admin: Admin, node_id: int) -> None:
    try:
        admin.unregister_broker(node_id)
    except KafkaError as error:
        if error.name != BROKER_NOT_REGISTERED:  # then a killed command has done it
            raise


def _remove_container(testbed: "Testbed", name: str) -> None:
    """Remove a host's links, container and disks; without effect where there are none."""
    if (fabric := testbed.places().get(FABRIC)) is not None:
        remove_links(name, fabric)
    for found in testbed.engine.containers(testbed.name):
        if found.host == name:
            testbed.engine.remove_container(found.id)
    remove_disks(testbed.engine, testbed.name, name)
