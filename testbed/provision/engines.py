"""The container engines of several machines, used as one: each resource is on the engine of its machine."""

import socket
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any, TypeVar

import paramiko
from docker.transport.sshconn import SSHHTTPAdapter

from testbed.errors import TestbedError
from testbed.hosts import SshHost
from testbed.network.apply import Place
from testbed.network.namespaces import NamespaceShell
from testbed.network.overlay import HERE, in_words
from testbed.provision.containers import (
    STATE,
    ContainerExit,
    ContainerSpec,
    Engine,
    EngineApi,
    HostContainer,
    NetworkTaken,
)

T = TypeVar("T")
_TIMEOUT_S = 60


class _Sessions:
    """The sessions of an SSH connection, as docker-py expects them of a paramiko client."""

    def __init__(self, machine: SshHost) -> None:
        self._machine = machine

    def get_transport(self) -> "_Sessions":
        return self

    def open_session(self) -> paramiko.Channel:
        return self._machine.session()

    def close(self) -> None:
        """Leave the connection open: it is the machine's."""


class _SshAdapter(SSHHTTPAdapter):
    """Docker's own `ssh://`: each connection to the engine is a session that runs `docker system dial-stdio`."""

    def __init__(self, machine: SshHost) -> None:
        self._machine = machine
        super().__init__("ssh://machine", timeout=_TIMEOUT_S)

    def _create_paramiko_client(self, base_url: str) -> None:
        del base_url
        # docker-py asks it for sessions only.
        self.ssh_client = _Sessions(self._machine)  # type: ignore[assignment]

    def _connect(self) -> None:
        """Do nothing: the machine connects at the first session."""


class _SshApi(EngineApi):
    def __init__(self, machine: SshHost) -> None:
        self._adapter = _SshAdapter(machine)
        super().__init__("http://engine:80", version="auto", timeout=_TIMEOUT_S)

    def get_adapter(self, url: str) -> _SshAdapter:
        """See `requests.Session.get_adapter`."""
        del url
        return self._adapter


def remote_engine(machine: SshHost) -> Engine:
    """Return the engine of a machine that is reached over SSH. Raise `TestbedError` when it does not answer."""
    return Engine(lambda: _SshApi(machine), machine.name, machine)


class EngineGroup(Engine):
    """The engines of a testbed on several machines. A container's id says which engine has it.

    The member that has a resource removes it.
    """

    def __init__(self, members: Mapping[str, Engine], shells: Mapping[str, SshHost]) -> None:
        super().__init__()
        self.members, self.shells = members, shells
        self._owners: dict[str, str] = {}
        """Container → machine."""

    def close(self) -> None:
        """See `Engine.close`."""
        for engine in self.members.values():
            engine.close()
        for shell in self.shells.values():
            shell.close()

    def wait_answering(self, timeout_s: float = 30.0) -> None:
        """See `Engine.wait_answering`: of the local engine. Another machine's engine answers, or SSH fails."""
        self.members[HERE].wait_answering(timeout_s)

    def info(self) -> dict[str, Any]:
        """See `Engine.info`: that of the machine of the testbed."""
        return self.members[HERE].info()

    def create_network(self, name: str, subnet: IPv4Network, labels: Mapping[str, str]) -> None:
        """Make the network on every machine. Raise `NetworkTaken` when its addresses are in use on one."""
        made: list[Engine] = []
        try:
            for machine, engine in self.members.items():
                engine.create_network(name, subnet, labels_on(machine, labels))
                made.append(engine)
        except NetworkTaken:
            for engine in made:
                engine.remove_network(name)
            raise

    def create(self, spec: ContainerSpec) -> str:
        """Make and start a container on its machine."""
        made = self.members[spec.machine].create(replace(spec, labels=labels_on(spec.machine, spec.labels)))
        self._owners[made] = spec.machine
        return made

    def pid(self, container: str) -> int:
        """See `Engine.pid`: the number is that of the container's machine."""
        return self._of(container).pid(container)

    def place(self, container: HostContainer) -> Place:
        """See `Engine.place`."""
        machine, pid = self._owners[container.id], self.pid(container.id)
        return pid if machine == HERE else NamespaceShell(in_words(container.host), pid, self.shells[machine])

    def cpus(self, container: str) -> float | None:
        """See `Engine.cpus`."""
        return self._of(container).cpus(container)

    def ended(self, container: str, host: str) -> ContainerExit | None:
        """See `Engine.ended`."""
        return self._of(container).ended(container, host)

    def limit_cpus(self, container: str, cpus: float | None) -> None:
        """See `Engine.limit_cpus`."""
        self._of(container).limit_cpus(container, cpus)

    def containers(self, name: str | None = None) -> list[HostContainer]:
        """Return all containers of a testbed on all machines. Raise `TestbedError` when one does not answer."""
        found = []
        for machine, engine in self.members.items():
            there = engine.containers(name)
            self._owners |= {each.id: machine for each in there}
            found += there
        return found

    def networks(self, name: str | None = None) -> list[tuple[str, Mapping[str, str]]]:
        """See `Engine.networks`: of all machines."""
        return [each for engine in self.members.values() for each in engine.networks(name)]

    def _of(self, container: str) -> Engine:
        return self.members[self._owners[container]]


def labels_on(machine: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a resource on a machine. Pure.

    The state folder on another machine may have the same path, as on a clone. Its own `testbed gc` must not take these
    resources for its own: there the label also names the machine of the testbed.
    """
    return dict(labels) if machine == HERE else {**labels, STATE: f"{socket.gethostname()}:{labels[STATE]}"}


def on_each(machines: Iterable[str], work: Callable[[str], T]) -> dict[str, T]:
    """Return the results of `work` for each machine, called in parallel. Raise one `TestbedError` for all failures."""
    names = list(machines)
    with ThreadPoolExecutor(max_workers=16) as pool:
        calls = {name: pool.submit(work, name) for name in names}
    errors = [error for call in calls.values() if (error := call.exception()) is not None]
    for error in errors:
        if not isinstance(error, TestbedError):
            raise error
    if errors:
        raise TestbedError("\n  ".join(dict.fromkeys(map(str, errors))))
    return {name: call.result() for name, call in calls.items()}
