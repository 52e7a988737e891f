"""The other machines of a testbed: how each is reached, what it must have, and the node image on it."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from ipaddress import IPv4Address

from testbed.errors import TestbedError
from testbed.hosts import Shell, SshHost
from testbed.hosts.host_keys import verified
from testbed.network.kernel import try_kind
from testbed.network.namespaces import MachineShell
from testbed.network.overlay import HERE, Overlay, machines_of, resolve_mtu
from testbed.network.underlay import interface_to
from testbed.owner import BOOT_ID
from testbed.provision.containers import Engine
from testbed.provision.engines import EngineGroup, on_each, remote_engine
from testbed.provision.machine import Need, no_netem_on, refusals
from testbed.provision.state import TestbedState, engine_addresses
from testbed.software.image import ImageRef
from testbed.topology import load_document
from testbed.topology.machines import EngineMachine
from testbed.topology.model import Topology

PROGRAMS = ("docker", "ip", "nsenter", "tar")


class MachineNotReady(TestbedError):
    """Another machine cannot have hosts of a testbed; the message has every reason."""


def pinned_keys(machines: Iterable[EngineMachine]) -> dict[str, str]:
    """Return machine → the key that its SSH server presents, which the user knows. Raise `TestbedError` otherwise."""
    by_name = {machine.name: machine for machine in machines if not machine.is_local}

    def key(name: str) -> str:
        machine, access = by_name[name], by_name[name].access
        try:
            return verified(access.address, access.port, access.host_key, access.known_hosts)
        except TestbedError as error:
            raise MachineNotReady(f"machine {name} ({machine.engine}): {error}") from error

    return on_each(by_name, key)


def engine_of(machines: Iterable[EngineMachine], keys: Mapping[str, str]) -> Engine:
    """Return the engine of a testbed: this machine's, or that of several machines as one. It connects at first use."""
    addresses = engine_addresses(machines, keys)
    shells = {name: SshHost(f"machine {name}", address) for name, address in addresses.items()}
    if not shells:
        return Engine()
    return EngineGroup({HERE: Engine(), **{name: remote_engine(shell) for name, shell in shells.items()}}, shells)


def engine_of_state(state: TestbedState | None) -> Engine:
    """Return the engine of a testbed that was made, or was begun."""
    if state is None or not state.machine_keys:
        return Engine()
    return engine_of(load_document(dict(state.topology)).machines, state.machine_keys)


def require_machines(topology: Topology, group: EngineGroup) -> Overlay:
    """Return the addresses and the MTU of the links between the machines.

    Raise `MachineNotReady`, which names everything that a machine lacks; nothing is made or changed.
    """
    if said := try_kind("vxlan"):
        raise MachineNotReady(f"this machine's kernel makes no VXLAN device ({said}); `modprobe vxlan` loads it")
    on_each(group.shells, lambda name: _require(topology, name, group.shells[name], group.members[name]))
    shells: Mapping[str, Shell] = {HERE: MachineShell(), **group.shells}
    _require_several({name: engine_identity(group.members[name], shell) for name, shell in shells.items()})
    declared = {machine.name if not machine.is_local else HERE: machine.address for machine in topology.machines}
    addresses = {name: declared.get(name) or _reached_at(group.shells[name]) for name in group.shells}
    first = next(iter(addresses.values()))
    here = declared.get(HERE) or interface_to(shells[HERE], first).address
    every = {HERE: here, **addresses}
    mtus = {}
    for name in machines_of(topology):
        peers = [address for other, address in every.items() if other != name]
        mtus[name] = min(interface_to(shells[name], peer).mtu for peer in peers)
    mtu, why = resolve_mtu(topology.mtu, mtus)
    if why:
        raise TestbedError(f"{topology.name}: {why}")
    return Overlay(every, mtu)


def engine_identity(engine: Engine, machine: Shell) -> str:
    """Return a text that no engine of another machine has. Clones of a machine have engines with the same id."""
    return f"{engine.info()['ID']} {machine.run(f'cat {BOOT_ID}').stdout.strip()}"


def _require_several(engines: Mapping[str, str]) -> None:
    """Raise `MachineNotReady` when two machines have one engine; `engines` is machine → the engine's identity."""
    first: dict[str, str] = {}
    for machine, identity in engines.items():
        if identity in first:
            names = " and ".join(name or "this machine" for name in (first[identity], machine))
            raise MachineNotReady(f"{names} have the same container engine; name each engine once, this one as local")
        first[identity] = machine


def _reached_at(shell: SshHost) -> str:
    """Return the IPv4 address on which a machine's SSH server was reached, as the machine has it."""
    words = shell.run('echo "$SSH_CONNECTION"').stdout.split()
    address = words[2] if len(words) == 4 else ""
    try:
        return str(IPv4Address(address))
    except ValueError as error:
        raise MachineNotReady(
            f"{shell.name}: SSH reached it at {address or 'an unknown address'}, which is no IPv4 address; "
            "declare its address on the network between the machines (address: at the machine)"
        ) from error


_TRIAL = "unshare --net sh -c 'ip link add t0 type vxlan id 1 dstport 4789 && ip link add t1 type bridge' 2>&1"


def _require(topology: Topology, name: str, shell: Shell, engine: Engine) -> None:
    lacks = []
    tests = "; ".join(f"command -v {program} >/dev/null || echo {program}" for program in PROGRAMS)
    words = shell.run(f"id -u; {tests}").stdout.split()
    if words[0] != "0":
        lacks.append("its SSH user is not root; the testbed lays links into containers there")
    elif said := shell.run(_TRIAL, check=False).stdout.strip():
        lacks.append(f"its kernel makes no VXLAN device ({said.splitlines()[0]})")
    if words[1:]:
        lacks.append(
            f"{', '.join(words[1:])} not installed; on Debian: apt-get install docker.io iproute2 util-linux tar"
        )
    else:
        try:
            cpus = int(engine.info()["NCPU"])
            lacks += refusals(topology, name, cpus, {Need.NETEM: lambda: no_netem_on(shell)})
        except TestbedError as error:
            lacks.append(str(error))
    if lacks:
        raise MachineNotReady(f"machine {name} cannot have hosts: {'; '.join(lacks)}")


def copy_image(group: EngineGroup, image: ImageRef) -> list[str]:
    """Copy the node image to each machine that lacks it; return these machines."""

    def copy(name: str) -> bool:
        engine = group.members[name]
        if engine.image_id(image.tag) == image.id:
            return False
        with closing(Engine()) as own:  # two threads cannot share a connection
            engine.load_image(own.save_image(image.tag))
        return True

    return [name for name, copied in on_each(group.shells, copy).items() if copied]
