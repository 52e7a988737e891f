"""The testbed's interface to the container engine, and the labels of all resources that a testbed makes in it.

`ls`, `down` and `gc` find containers, networks and volumes by their labels.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import docker
import docker.errors
import docker.utils
import requests
from docker.types import IPAMConfig, IPAMPool

from testbed.errors import TestbedError
from testbed.hosts import Shell, SshHost
from testbed.network.apply import Place
from testbed.owner import Owner
from testbed.paths import state_dir
from testbed.software.engine import OWNER_LABEL, ROLE_LABEL, STATE_LABEL, facts, tar_of, unreadable_cache
from testbed.wait import WaitTimeout, wait_for, wait_until

NAME, HOST, SLOT = "testbed.name", "testbed.host", "testbed.slot"
ROLE, OWNER, STATE = ROLE_LABEL, OWNER_LABEL, STATE_LABEL


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that all resources of one testbed share."""

    name: str
    slot: int
    owner: Owner
    state_dir: str

    def of(self, role: str, host: str = "") -> dict[str, str]:
        """Return the labels of one resource; roles: host, fabric, management."""
        labels = {NAME: self.name, ROLE: role, SLOT: str(self.slot), OWNER: str(self.owner), STATE: self.state_dir}
        return {**labels, HOST: host} if host else labels


def name_of_host(testbed: str, host: str) -> str:
    """Return the engine's name of a host's container, and of the volume of its disk.

    Names of testbeds and of hosts have hyphens, but no dots. So host `b` of testbed `a-c` and host `c-b` of testbed `a`
    have two names.
    """
    return f"testbed-{testbed}.{host}"


def name_of_fabric(testbed: str) -> str:
    """Return the engine's name of a fabric's container; a host that is called `fabric` has another name."""
    return f"testbed-{testbed}_fabric"


SYSCTLS: Mapping[str, str] = {
    "net.ipv6.conf.all.disable_ipv6": "1",
    # Several NICs of a host are in one rack: each answers for its own address only, and uses its own in requests.
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.arp_announce": "2",
    # The fabric has an address in each rack that its routes do not reach.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
}
IPV6 = "net.ipv6."
IPV6_SETTINGS = Path("/proc/sys/net/ipv6")
"""Does not exist on a machine that was booted with ipv6.disable=1."""
SECURITY = ("label=disable",)
"""SELinux lets a container read no mounted folder of a user's home otherwise; without SELinux it has no effect."""
CPU_PERIOD_US = 100_000
_PIECE_BYTES = 1 << 16
BACK_S = 30.0
"""Seconds to wait for an engine that is being restarted."""


class NetworkTaken(TestbedError):
    """The engine already uses (part of) these addresses."""


@dataclass(frozen=True, slots=True)
class HostContainer:
    """A container of a testbed, as the engine reports it."""

    id: str
    labels: Mapping[str, str]
    running: bool
    """A paused container runs: it has lost nothing, and goes on when somebody continues it."""

    @property
    def host(self) -> str:
        """Return the container's host; empty for the fabric."""
        return self.labels.get(HOST, "")

    @property
    def role(self) -> str:
        """Return `host` or `fabric`."""
        return self.labels.get(ROLE, "")


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """The specification of a container."""

    name: str
    image: str
    command: Sequence[str]
    labels: Mapping[str, str]
    hostname: str
    network: str | None = None
    ip: str | None = None
    read_only_mounts: Mapping[str, str] = field(default_factory=dict)
    """Path on the machine → path in the container."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files that are written before the container starts."""
    private_files: Sequence[str] = ()
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Volume of the engine → path in the container, writable."""
    bandwidths: Mapping[str, int] = field(default_factory=dict)
    """Device of the machine → the highest rate of reads and of writes, bytes/s."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Name → address for its /etc/hosts, so that a lookup of an address's name asks no DNS."""
    cpus: float | None = None
    """The number of CPUs that all its processes share; None: all CPUs of the machine."""
    machine: str = ""
    """The machine whose engine makes it; empty for the machine of the testbed."""
    capabilities: Sequence[str] = ()
    """Linux capabilities besides the engine's usual ones."""


@dataclass(frozen=True, slots=True)
class ContainerExit:
    """A container that has ended. `host` is empty for the fabric's."""

    host: str
    exit_code: int
    at: datetime


class EngineGone(TestbedError):
    """The engine stopped answering: it was stopped, or is being restarted."""


def sysctls(*, ipv6: bool) -> dict[str, str]:
    """Return a container's settings of the kernel; the engine refuses those of IPv6 on a kernel without it."""
    return {name: value for name, value in SYSCTLS.items() if ipv6 or not name.startswith(IPV6)}


def cpu_quota_us(cpus: float | None) -> int:
    """Return the microseconds per `CPU_PERIOD_US` that all processes of a container share; -1: no limit."""
    return -1 if cpus is None else round(cpus * CPU_PERIOD_US)


class EngineApi(docker.APIClient):
    """The engine's interface. A request that the engine does not answer raises `EngineGone`."""

    def send(self, *args: Any, **named: Any) -> requests.Response:
        """See `requests.Session.send`."""
        try:
            return super().send(*args, **named)
        except (requests.exceptions.ConnectionError, requests.exceptions.Timeout) as error:
            why = f"the container engine stopped answering ({error}); was it stopped or restarted?"
            raise EngineGone(why) from error


def _local_api() -> EngineApi:
    return EngineApi(version="auto", timeout=60, **docker.utils.kwargs_from_env())


class Engine:
    """A connection to the container engine that DOCKER_HOST (or the usual socket) names; opened at first use.

    With `connect` it is another engine's, that of `machine`, on which `shell` runs commands.
    """

    def __init__(
        self, connect: Callable[[], EngineApi] | None = None, machine: str = "", shell: Shell | None = None
    ) -> None:
        self._connect = connect or _local_api
        self._machine = machine
        self._shell = shell
        self.shells: Mapping[str, SshHost] = {}
        """A shell as root on each other machine."""
        self.members: Mapping[str, Engine] = {"": self}
        """The engine of each machine; the name of the machine of the testbed is empty."""

    @cached_property
    def _api(self) -> EngineApi:
        try:
            return self._connect()
        except docker.errors.DockerException as error:
            where = f" of {self._machine}" if self._machine else ""
            remedy = "; `testbed doctor --fix` installs and starts one" if not self._machine else ""
            raise TestbedError(f"the container engine{where} does not answer ({error}){remedy}") from error

    @property
    def is_local(self) -> bool:
        """Return whether it is the engine of the machine of the testbed."""
        return not self._machine

    def close(self) -> None:
        """Close the connection, if it was opened."""
        if "_api" in self.__dict__:
            self._api.close()

    def _has_ipv6(self) -> bool:
        """Return whether the kernel of the engine's machine has IPv6."""
        if self._shell is None:
            return IPV6_SETTINGS.exists()
        return self._shell.run(["test", "-e", str(IPV6_SETTINGS)], check=False).exit_status == 0

    def wait_answering(self, timeout_s: float = BACK_S) -> None:
        """Wait until the engine answers; only a restarting engine needs a wait. Raise `EngineGone` on a timeout."""

        def answer() -> str:
            try:
                self._api.ping()
            except EngineGone as error:
                return str(error)
            except docker.errors.APIError as error:
                return str(error.explanation)  # it answers, but is not ready yet
            return ""

        try:
            wait_for(answer, lambda trouble: not trouble, timeout_s, 0.1, "the container engine to answer again")
        except WaitTimeout as error:
            raise EngineGone(str(error)) from error

    def info(self) -> dict[str, Any]:
        """Return the engine's description of itself."""
        info: dict[str, Any] = self._api.info()
        return info

    def lacks(self) -> tuple[str, ...]:
        """Return the reasons why testbeds cannot work on this engine, each with its remedy."""
        return facts(self._api.version(), self._api.info()).lacks

    def create_network(self, name: str, subnet: IPv4Network, labels: Mapping[str, str]) -> None:
        """Make a bridge network without external access. Raise `NetworkTaken` when its addresses are in use."""
        try:
            self._api.create_network(
                name,
                driver="bridge",
                internal=True,
                labels=dict(labels),
                ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=str(subnet))]),
            )
        except docker.errors.APIError as error:
            # Docker: "Pool overlaps with other one on this address space"; Podman: "subnet … is already used".
            if "overlap" in str(error.explanation) or "already used" in str(error.explanation):
                raise NetworkTaken(f"{subnet} is in use by another network of the engine") from error
            raise _refused(f"network {name}", error) from error

    def create_volume(self, name: str, options: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Make a volume that the engine mounts with the options of mount(8) while a container uses it."""
        with _refusals(f"volume {name}"):
            self._api.create_volume(name, driver="local", driver_opts=dict(options), labels=dict(labels))

    def volumes(self, name: str) -> list[str]:
        """Return the names of all volumes of testbed `name` of this state folder, which has the files of its disks."""
        found = self._api.volumes(filters={"label": [_filter(name), f"{STATE}={state_dir()}"]})
        return [str(each["Name"]) for each in found.get("Volumes") or []]

    def remove_volume(self, volume: str) -> None:
        """Remove the volume; do nothing when it does not exist."""
        with _refusals(f"volume {volume}"), suppress(docker.errors.NotFound):
            self._api.remove_volume(volume)

    def create(self, spec: ContainerSpec) -> str:
        """Make and start a container and return its id. Leave nothing behind when it cannot be started."""
        networking = None
        if spec.network:
            endpoint = self._api.create_endpoint_config(ipv4_address=spec.ip)
            # The types say that one endpoint is expected; the engine's interface has a mapping of networks.
            networking = self._api.create_networking_config({spec.network: endpoint})  # type: ignore[arg-type]
        limits: list[Mapping[str, str | int]] | None = [
            {"Path": device, "Rate": rate} for device, rate in spec.bandwidths.items()
        ] or None
        with _refusals(f"container {spec.name}"):
            created = self._api.create_container(
                spec.image,
                entrypoint=["tini", "--"],
                command=list(spec.command),
                name=spec.name,
                hostname=spec.hostname,
                labels=dict(spec.labels),
                networking_config=networking,
                volumes=[*spec.read_only_mounts.values(), *spec.volumes.values()],
                host_config=self._api.create_host_config(
                    network_mode=spec.network or "none",
                    binds=[
                        *(f"{source}:{target}:ro" for source, target in spec.read_only_mounts.items()),
                        *(f"{volume}:{target}:nocopy" for volume, target in spec.volumes.items()),
                    ],
                    device_read_bps=limits,
                    device_write_bps=limits,
                    sysctls=sysctls(ipv6=self._has_ipv6()),
                    security_opt=list(SECURITY),
                    cpu_period=CPU_PERIOD_US,
                    cpu_quota=cpu_quota_us(spec.cpus),
                    extra_hosts=dict(spec.names),
                    cap_add=list(spec.capabilities) or None,
                ),
            )
        identity: str = created["Id"]
        try:
            if spec.files:
                self._api.put_archive(identity, "/", tar_of(spec.files, spec.private_files))
            self._api.start(identity)
        except docker.errors.APIError as error:
            with suppress(TestbedError):  # what cannot be removed now is found by its labels
                self.remove_container(identity)
            raise _refused(f"container {spec.name}", error) from error
        return identity

    def pid(self, container: str) -> int:
        """Return the machine's process number of the container's first process. Raise `TestbedError` without one."""
        try:
            found = self._api.inspect_container(container)
        except docker.errors.NotFound as error:
            raise TestbedError(f"container {container[:12]} was removed by another command") from error
        state = found["State"]
        if not state["Pid"]:
            name = str(found.get("Name", container[:12])).removeprefix("/")
            raise TestbedError(
                f"container {name} is not running ({state['Status']}, exit code {state['ExitCode']}): "
                f"{self._api.logs(container, tail=10).decode(errors='replace').strip()}"
            )
        return int(state["Pid"])

    def place(self, container: HostContainer) -> Place:
        """Return the network namespace of a running container."""
        return self.pid(container.id)

    def cpus(self, container: str) -> float | None:
        """Return the CPU limit that the engine gave a container; None without one."""
        limits = self._api.inspect_container(container)["HostConfig"]
        return limits["CpuQuota"] / limits["CpuPeriod"] if limits["CpuPeriod"] and limits["CpuQuota"] > 0 else None

    def image_id(self, tag: str) -> str | None:
        """Return the id of an image; None when the engine does not have it."""
        try:
            return str(self._api.inspect_image(tag)["Id"])  # type: ignore[no-untyped-call]
        except docker.errors.ImageNotFound:
            return None

    def save_image(self, tag: str) -> Iterator[bytes]:
        """Yield an image as a tar archive, for another engine's `load_image`."""
        # Small pieces: paramiko copies the rest of a piece after each packet.
        yield from self._api.get_image(tag, chunk_size=_PIECE_BYTES)

    def load_image(self, archive: Iterator[bytes]) -> None:
        """Load an image that another engine saved. Raise `TestbedError` when the engine refuses it."""
        with _refusals("the node image"):
            for answer in self._api.load_image(archive, quiet=True):  # type: ignore[no-untyped-call]
                if "error" in answer:
                    raise TestbedError(f"the engine of {self._machine} refused the image: {answer['error']}")

    def ended(self, container: str, host: str) -> ContainerExit | None:
        """Return when and how a container of `host` ended; None when it runs, never ran, or is gone."""
        try:
            state = self._api.inspect_container(container)["State"]
        except docker.errors.NotFound:
            return None
        if state["Running"] or state["Status"] == "created":
            return None
        return ContainerExit(host, int(state["ExitCode"]), datetime.fromisoformat(state["FinishedAt"]))

    def limit_cpus(self, container: str, cpus: float | None) -> None:
        """Limit all processes of a running container to this number of CPUs; None: all CPUs of the machine."""
        with _refusals(f"the limit of container {container[:12]}"):
            self._api.update_container(container, cpu_period=CPU_PERIOD_US, cpu_quota=cpu_quota_us(cpus))

    def containers(self, name: str | None = None) -> list[HostContainer]:
        """Return all containers of testbed `name`, or of every testbed, in any state."""
        return self._labelled(_filter(name))

    def helpers(self) -> list[HostContainer]:
        """Return the containers that one command works with, and that belong to no testbed (`helper_labels`)."""
        return [each for each in self._labelled(ROLE) if NAME not in each.labels]

    def _labelled(self, label: str) -> list[HostContainer]:
        found = self._api.containers(all=True, filters={"label": label})
        alive = ("running", "paused")
        return [HostContainer(str(each["Id"]), each["Labels"], each["State"] in alive) for each in found]

    def networks(self, name: str | None = None) -> list[tuple[str, Mapping[str, str]]]:
        """Return id and labels of all networks of testbed `name`, or of every testbed."""
        found = self._api.networks(filters={"label": _filter(name)})
        return [(str(each["Id"]), each["Labels"] or {}) for each in found]

    def remove_container(self, container: str) -> None:
        """Kill and remove the container; do nothing when it does not exist."""
        try:
            self._api.remove_container(container, force=True, v=True)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            if error.status_code != 409:  # another command is removing it: wait for that below
                raise TestbedError(f"container {container[:12]}: {error.explanation}") from error
            what = f"container {container[:12]}, which another command is removing, to go"
            wait_until(lambda: not self._api.containers(all=True, filters={"id": container}), 20.0, 0.1, what)

    def remove_network(self, network: str) -> None:
        """Remove the network; do nothing when it does not exist."""
        with _refusals(f"network {network[:12]}"), suppress(docker.errors.NotFound):
            self._api.remove_network(network)


@contextmanager
def _refusals(what: str) -> Iterator[None]:
    try:
        yield
    except docker.errors.APIError as error:
        raise _refused(what, error) from error


def _refused(what: str, error: docker.errors.APIError) -> TestbedError:
    said = str(error.explanation)
    if "no space left on device" in said:
        return TestbedError(
            f"{what}: the engine's disk is full ({said}); `testbed gc` and `docker system df` list what can be removed"
        )
    return TestbedError(f"{what}: {unreadable_cache(said) or f'the engine refused it: {said}'}")


def _filter(name: str | None) -> str:
    return f"{NAME}={name}" if name else NAME
