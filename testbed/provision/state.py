"""The state of each testbed between two commands: one folder each under the state folder, with its keys.

The state suffices to reach the hosts of a testbed again.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Literal

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from results.contract import durable
from results.contract.document import decode
from results.contract.untrusted import parse_json
from testbed.errors import TestbedError, UsageError
from testbed.hosts import SshHost
from testbed.hosts.relocation import PathRelocation
from testbed.hosts.ssh import SshAddress
from testbed.network.addresses import AddressPlan, MachineAddresses
from testbed.network.shape import FULL_MTU
from testbed.objectstore.server import Credentials
from testbed.owner import is_dead
from testbed.paths import state_dir
from testbed.provision.inventory.access import VerifiedKeys, ssh_address
from testbed.topology import Topology
from testbed.topology.machines import EngineMachine


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An Ed25519 key in OpenSSH's formats."""

    private: bytes
    public: str

    @classmethod
    def generate(cls) -> "KeyPair":
        """Return a new key pair."""
        return cls.of(Ed25519PrivateKey.generate())

    @classmethod
    def of(cls, key: serialization.SSHPrivateKeyTypes) -> "KeyPair":
        """Return the pair of a private key."""
        pem, openssh = serialization.Encoding.PEM, serialization.Encoding.OpenSSH
        private = key.private_bytes(pem, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
        return cls(private, key.public_key().public_bytes(openssh, serialization.PublicFormat.OpenSSH).decode())


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its creation on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(content)


NO_SLOT = -1
"""The slot of a testbed whose addresses are not allocated yet."""
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
Status = Literal["creating", "up", "removing"]


def check_name(name: str) -> str:
    """Return the name. Raise `UsageError` with the allowed names when it is not allowed."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"testbed name {name!r}: a name begins with a lower-case letter and has at most 32 "
            "lower-case letters, digits and hyphens, for example `three-brokers-2`"
        )
    return name


@dataclass(frozen=True, slots=True)
class MachineState:
    """What reaches a machine that exists, and what the testbed has on it.

    `home` is the testbed's folder there; `software` has the copied software, which several testbeds may share. `mark`
    is in the environment of every process. `ssh_port` is the port of the SSH server on the machine itself. `boot`
    identifies the machine's boot: after another boot nothing of the testbed runs.
    """

    host_key: str
    jump_key: str
    home: str
    software: str
    mark: str
    java: str
    ssh_port: int
    addresses: tuple[str, ...]
    boot: str


@dataclass(frozen=True, slots=True)
class TestbedState:
    """The data that reaches a testbed again without its topology file."""

    __test__ = False

    name: str
    status: Status
    slot: int
    topology: Mapping[str, Any]
    """The resolved topology, as `Topology.to_document()` gives it."""
    topology_digest: str
    owner: str
    ephemeral: bool
    """True for one run's testbed: it is garbage as soon as its owner is dead."""
    created: str
    cluster_id: str
    kafka: Mapping[str, str]
    """Host → Kafka version."""
    overlay: Mapping[str, str]
    """Broker properties that replace the topology's, for instance of an experiment."""
    host_keys: Mapping[str, str]
    """Host → pinned public host key."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Digests of the testbed's software: the image, the jars per version."""
    defects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Host → the defects that its broker has on purpose, each as an option of the Java agent (`testbed.defects`)."""
    places: tuple[str, ...] = ()
    """The topology's hosts by number, also removed ones (`Topology.places`)."""
    changing: Mapping[str, str] = field(default_factory=dict)
    """Host → the process that is adding or removing it (see `Owner`). Such a host need not run."""
    own_hosts: Mapping[str, str] = field(default_factory=dict)
    """Host → the process of the run that has to leave the testbed with these hosts (see `Owner`); empty without one."""
    restarting: str = ""
    """The process that is restarting Kafka with `overlay` (see `Owner`); empty while no process is."""
    machines: Mapping[str, MachineState] = field(default_factory=dict)
    """Host → its machine, where the hosts exist; empty where the testbed makes containers."""
    machine_keys: Mapping[str, str] = field(default_factory=dict)
    """Machine with an engine → the pinned public key of its SSH server; empty for one machine."""
    machine_addresses: Mapping[str, str] = field(default_factory=dict)
    """Machine → its address on the network between the machines; an empty name is the machine of the testbed."""
    mtu: int = FULL_MTU
    """The MTU of the data NICs."""

    @property
    def interrupted(self) -> str:
        """Return what did not end if no command goes on with it; empty for a testbed that is up."""
        return {"creating": "its `up` was interrupted", "removing": "its removal was interrupted"}.get(self.status, "")

    @property
    def half_changed(self) -> str:
        """Return the hosts that a command was adding or removing when it was killed, or that a run has not put back.

        Return an empty text without any.
        """
        dead = [host for host, owner in self.changing.items() if is_dead(owner)]
        if dead:
            return f"{', '.join(dead)}, which a killed command was adding or removing"
        if not any(map(is_dead, self.own_hosts.values())):
            return ""
        other = sorted(self.own_hosts.keys() ^ set(self.topology["hosts"]))
        return f"{', '.join(other)}, which a run added or removed and did not put back" if other else ""


def folder(name: str) -> Path:
    """Return the folder of one testbed's state."""
    return state_dir() / "testbeds" / check_name(name)


def private_key_path(name: str) -> Path:
    """Return the path of the key that all hosts of the testbed accept."""
    return folder(name) / "id_ed25519"


def write_key(name: str, key: KeyPair) -> None:
    """Write the login key into the testbed's folder, readable by its owner only. Raise as `save`."""
    with _writing(private_key_path(name)):
        folder(name).mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(private_key_path(name), key.private)


def load_key(name: str) -> KeyPair:
    """Return the login key of a testbed. Raise `TestbedError` when it is missing or damaged."""
    path = private_key_path(name)
    with _reading(name, f"{path}, the key of testbed {name}'s hosts"):
        return KeyPair.of(serialization.load_ssh_private_key(path.read_bytes(), None))


def credentials_path(name: str) -> Path:
    """Return the path of the credentials of the testbed's object store."""
    return folder(name) / "s3-credentials"


def write_credentials(name: str, credentials: Credentials) -> None:
    """Write the object store's credentials into the testbed's folder, readable by its owner only. Raise as `save`."""
    with _writing(credentials_path(name)):
        write_private(credentials_path(name), credentials.text().encode())


def load_credentials(name: str) -> Credentials:
    """Return the credentials of a testbed's object store. Raise `TestbedError` when they are missing or damaged."""
    path = credentials_path(name)
    with _reading(name, f"{path}, with which testbed {name}'s object store is used"):
        return Credentials.parse(path.read_text(encoding="utf-8"))


@contextlib.contextmanager
def _reading(name: str, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise TestbedError(
            f"{what}, cannot be read: {why}; `testbed down {name}` and `testbed up` make it again"
        ) from error


def save(state: TestbedState) -> None:
    """Write the state durably and atomically. Raise `TestbedError` on failure, for instance on a full disk."""
    path = folder(state.name) / "state.json"
    with _writing(path):
        durable.make_folder(path.parent, 0o700)
        durable.write(path, json.dumps(asdict(state), indent=1))


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TestbedError(
            f"{path} cannot be written: {error.strerror}; free space there, or set XDG_STATE_HOME"
        ) from error


def load(name: str) -> TestbedState | None:
    """Return the state of a testbed; None without one. Raise `TestbedError` when the file is damaged."""
    path = folder(name) / "state.json"
    try:
        return decode(TestbedState, parse_json(path.read_text()), path.name)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise TestbedError(
            f"{path}: not a testbed's state ({error}); `testbed down {name}` removes the testbed all the same"
        ) from error


def forget(name: str) -> None:
    """Remove the testbed's folder with its keys."""
    if folder(name).exists():
        shutil.rmtree(folder(name))


def names() -> list[str]:
    """Return the name of every testbed with a state folder here."""
    root = state_dir() / "testbeds"
    return sorted(path.name for path in root.iterdir() if _NAME.fullmatch(path.name)) if root.is_dir() else []


@contextlib.contextmanager
def lock(name: str, *, wait: bool = False, for_run: bool = False) -> Iterator[None]:
    """Lock `name` for one change. Raise an error when another process holds the lock, unless `wait`.

    `for_run` excludes other runs only: a user may add faults while a run lasts, or remove its testbed.
    The kernel releases the lock when its process ends, however it ends. The file disappears with the change: each run
    has a testbed of its own name.
    """
    path = _locks() / (f"{name}.run.lock" if for_run else f"{name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(durable.lock(path, wait=wait, remove=True))
        except BlockingIOError as error:
            what = f"a run uses `{name}`" if for_run else f"another command is changing `{name}`"
            raise TestbedError(f"{what} right now (lock {path}); wait for it or stop it") from error
        yield


def remove_unheld_locks() -> None:
    """Remove the files of locks whose holders were killed."""
    for path in _locks().glob("*.lock"):
        with contextlib.suppress(BlockingIOError), durable.lock(path, wait=False, remove=True):
            pass


def _locks() -> Path:
    return state_dir() / "locks"


def ssh_hosts(
    state: TestbedState, topology: Topology, plan: AddressPlan, *, connect_timeout_s: float = 15.0
) -> Mapping[str, SshHost]:
    """Return every host by its name: on the management network, with the testbed's key and the host's pinned key.

    A machine that exists is reached as the topology says, with the key that was pinned by `up`.
    """
    if state.machines:
        return machine_hosts(state, topology, connect_timeout_s=connect_timeout_s)
    jumps = engine_addresses(topology.machines, state.machine_keys)
    return {
        host.name: SshHost(
            host.name,
            SshAddress(
                host=str(plan.management_ip(host.name)),
                port=22,
                user="root",
                private_key=str(private_key_path(state.name)),
                host_key=state.host_keys[host.name],
                jump=jumps.get(host.machine or ""),
            ),
            connect_timeout_s=connect_timeout_s,
        )
        for host in topology.hosts
    }


def engine_addresses(machines: Iterable[EngineMachine], keys: Mapping[str, str]) -> dict[str, SshAddress]:
    """Return the address of the SSH server of each machine with an engine; `keys` has their pinned public keys."""
    return {
        machine.name: ssh_address(machine.access, VerifiedKeys(keys[machine.name]))
        for machine in machines
        if machine.name in keys
    }


def machine_hosts(
    state: TestbedState, topology: Topology, *, connect_timeout_s: float = 15.0, relocated: bool = True
) -> Mapping[str, SshHost]:
    """Return every machine by its host's name. Unless `relocated`, commands run as the user, with paths as they are."""
    found = {}
    for host in topology.hosts:
        machine = state.machines[host.name]
        keys = VerifiedKeys(machine.host_key, machine.jump_key)
        relocation = PathRelocation(machine.home, machine.mark, host.access.sudo, machine.java) if relocated else None
        found[host.name] = SshHost(
            host.name, ssh_address(host.access, keys), connect_timeout_s=connect_timeout_s, relocation=relocation
        )
    return found


def address_plan(state: TestbedState, topology: Topology) -> AddressPlan:
    """Return the addresses of a testbed's hosts."""
    if not state.machines:
        return AddressPlan(state.slot, topology.by_number)
    ssh = {host.name: host.access.address for host in topology.hosts}
    nics = {name: tuple(map(IPv4Address, machine.addresses)) for name, machine in state.machines.items()}
    return MachineAddresses(NO_SLOT, topology.by_number, ssh, nics)
