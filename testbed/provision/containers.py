"""The container engine as a testbed uses it, and the labels of everything that a testbed makes in it.

`ls`, `down` and `gc` find containers, networks and volumes by their labels.
"""

import io
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Network
from typing import Any

import docker
import docker.errors
import docker.utils
import requests
from docker.types import IPAMConfig, IPAMPool

from testbed.errors import TestbedError
from testbed.owner import Owner
from testbed.wait import WaitTimeout, wait_for

NAME = "testbed.name"
ROLE = "testbed.role"
HOST = "testbed.host"
SLOT = "testbed.slot"
OWNER = "testbed.owner"
STATE = "testbed.state"


@dataclass(frozen=True, slots=True)
class Labels:
    """What all resources of one testbed have in common."""

    name: str
    slot: int
    owner: Owner
    state_dir: str

    def of(self, role: str, host: str = "") -> dict[str, str]:
        """The labels of one resource; roles: host, fabric, management."""
        labels = {
            NAME: self.name,
            ROLE: role,
            SLOT: str(self.slot),
            OWNER: str(self.owner),
            STATE: self.state_dir,
        }
        return {**labels, HOST: host} if host else labels


SYSCTLS: Mapping[str, str] = {
    "net.ipv6.conf.all.disable_ipv6": "1",
    # Several NICs of a host stand in one rack: each answers for its own address only, and asks with its own.
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.arp_announce": "2",
    # The fabric has an address in each rack to which its routes do not lead.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
}
CPU_PERIOD_US = 100_000
BACK_S = 30.0
"""How long an engine that is being restarted is waited for."""


class NetworkTaken(TestbedError):
    """The engine already uses (part of) these addresses."""


@dataclass(frozen=True, slots=True)
class HostContainer:
    """A container of a testbed, as the engine reports it."""

    id: str
    labels: Mapping[str, str]
    running: bool

    @property
    def host(self) -> str:
        """The host it is; empty for the fabric."""
        return self.labels.get(HOST, "")

    @property
    def role(self) -> str:
        """`host` or `fabric`."""
        return self.labels.get(ROLE, "")


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """A container to be made."""

    name: str
    image: str
    command: Sequence[str]
    labels: Mapping[str, str]
    hostname: str
    network: str | None
    ip: str | None
    read_only_mounts: Mapping[str, str]
    """Path on the machine → path in the container."""
    files: Mapping[str, bytes]
    """Put in place before it starts."""
    private_files: Sequence[str] = ()
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Volume of the engine → path in the container, writable."""
    bandwidths: Mapping[str, int] = field(default_factory=dict)
    """Device of the machine → bytes/s that may be read from it, and written to it."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Name → address, for its /etc/hosts. Who looks for the name of an address finds it there, and asks no DNS."""
    cpus: float | None = None
    """So many CPUs are shared by all of its processes; None: as many as there are."""


@dataclass(frozen=True, slots=True)
class ContainerExit:
    """A container that has run and does not any more. `host` is empty for the fabric's."""

    host: str
    exit_code: int
    at: datetime


class EngineGone(TestbedError):
    """The engine stopped answering: it was stopped, or is being restarted."""


def cpu_quota_us(cpus: float | None) -> int:
    """Microseconds of `CPU_PERIOD_US` that a container's processes get together; -1: no limit."""
    return -1 if cpus is None else round(cpus * CPU_PERIOD_US)


class _Api(docker.APIClient):
    """The engine's interface; a request that the engine does not answer raises `EngineGone`."""

    def send(self, *args: Any, **named: Any) -> requests.Response:
        """See `requests.Session.send`."""
        try:
            return super().send(*args, **named)
        except (requests.exceptions.ConnectionError, requests.exceptions.Timeout) as error:
            why = f"the container engine stopped answering ({error}); was it stopped or restarted?"
            raise EngineGone(why) from error


class Engine:
    """A connection to the container engine that DOCKER_HOST (or the usual socket) names."""

    def __init__(self) -> None:
        try:
            self._api = _Api(version="auto", timeout=60, **docker.utils.kwargs_from_env())
        except docker.errors.DockerException as error:
            raise TestbedError(
                f"the container engine does not answer ({error}); `testbed doctor --fix` installs and starts one"
            ) from error

    def close(self) -> None:
        """Let go of the connection."""
        self._api.close()

    def wait_answering(self, timeout_s: float = BACK_S) -> None:
        """Wait until the engine answers, as it does at once unless it is just being restarted. Raises `EngineGone`."""

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
        """What the engine says of itself."""
        info: dict[str, Any] = self._api.info()
        return info

    def create_network(self, name: str, subnet: IPv4Network, labels: Mapping[str, str]) -> None:
        """A bridge network without a way out. Raises `NetworkTaken` when its addresses are in use."""
        try:
            self._api.create_network(
                name,
                driver="bridge",
                internal=True,
                labels=dict(labels),
                ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=str(subnet))]),
            )
        except docker.errors.APIError as error:
            if "overlap" in str(error.explanation):
                raise NetworkTaken(f"{subnet} is in use by another network of the engine") from error
            raise _refused(f"network {name}", error) from error

    def create_volume(self, name: str, options: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """A volume that the engine mounts itself, with the options of mount(8), for as long as a container has it."""
        try:
            self._api.create_volume(name, driver="local", driver_opts=dict(options), labels=dict(labels))
        except docker.errors.APIError as error:
            raise _refused(f"volume {name}", error) from error

    def volumes(self, name: str) -> list[str]:
        """The names of all volumes of testbed `name`."""
        found = self._api.volumes(filters={"label": _filter(name)})
        return [str(each["Name"]) for each in found.get("Volumes") or []]

    def remove_volume(self, volume: str) -> None:
        """Remove; one that is gone already is no error."""
        try:
            self._api.remove_volume(volume)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            raise TestbedError(f"volume {volume}: {error.explanation}") from error

    def create(self, spec: ContainerSpec) -> str:
        """Make and start a container; returns its id. Nothing is left when it cannot be started."""
        networking = None
        if spec.network:
            endpoint = self._api.create_endpoint_config(ipv4_address=spec.ip)
            # The types say that one endpoint is expected; the engine's interface has a mapping of networks.
            networking = self._api.create_networking_config({spec.network: endpoint})  # type: ignore[arg-type]
        limits: list[Mapping[str, str | int]] | None = [
            {"Path": device, "Rate": rate} for device, rate in spec.bandwidths.items()
        ] or None
        try:
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
                    sysctls=dict(SYSCTLS),
                    cpu_period=CPU_PERIOD_US,
                    cpu_quota=cpu_quota_us(spec.cpus),
                    extra_hosts=dict(spec.names),
                ),
            )
            if spec.files:
                self._api.put_archive(created["Id"], "/", _tar(spec.files, spec.private_files))
            self._api.start(created["Id"])
        except docker.errors.APIError as error:
            raise _refused(f"container {spec.name}", error) from error
        identity: str = created["Id"]
        return identity

    def pid(self, container: str) -> int:
        """The number, on the machine, of the container's first process."""
        state = self._api.inspect_container(container)["State"]
        if not state["Pid"]:
            raise TestbedError(
                f"container {container[:12]} is not running ({state['Status']}, exit code {state['ExitCode']}): "
                f"{self._api.logs(container, tail=10).decode(errors='replace').strip()}"
            )
        return int(state["Pid"])

    def ended(self, container: str, host: str) -> ContainerExit | None:
        """When and how a container of `host` ended; None for one that runs, never ran, or is gone."""
        try:
            state = self._api.inspect_container(container)["State"]
        except docker.errors.NotFound:
            return None
        if state["Running"] or state["Status"] == "created":
            return None
        return ContainerExit(host, int(state["ExitCode"]), datetime.fromisoformat(state["FinishedAt"]))

    def limit_cpus(self, container: str, cpus: float | None) -> None:
        """Let all processes of a running container share so many CPUs; None: as many as there are."""
        try:
            self._api.update_container(container, cpu_period=CPU_PERIOD_US, cpu_quota=cpu_quota_us(cpus))
        except docker.errors.APIError as error:
            raise TestbedError(f"container {container[:12]}: the limit was refused: {error.explanation}") from error

    def containers(self, name: str | None = None) -> list[HostContainer]:
        """All containers of testbed `name`, or of every testbed, whatever their state."""
        found = self._api.containers(all=True, filters={"label": _filter(name)})
        return [HostContainer(str(each["Id"]), each["Labels"], each["State"] == "running") for each in found]

    def networks(self, name: str | None = None) -> list[tuple[str, Mapping[str, str]]]:
        """Id and labels of all networks of testbed `name`, or of every testbed."""
        found = self._api.networks(filters={"label": _filter(name)})
        return [(str(each["Id"]), each["Labels"] or {}) for each in found]

    def remove_container(self, container: str) -> None:
        """Kill and remove; one that is gone already is no error."""
        try:
            self._api.remove_container(container, force=True, v=True)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            if error.status_code != 409:  # another command is removing it right now: wait for that below
                raise TestbedError(f"container {container[:12]}: {error.explanation}") from error
            self._wait_gone(container)

    def _wait_gone(self, container: str) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                self._api.inspect_container(container)
            except docker.errors.NotFound:
                return
            time.sleep(0.1)  # the engine announces removals only as an event stream; this is rare and short
        raise TestbedError(f"container {container[:12]} is being removed by another command, and does not go")

    def remove_network(self, network: str) -> None:
        """Remove; one that is gone already is no error."""
        try:
            self._api.remove_network(network)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            raise TestbedError(f"network {network[:12]}: {error.explanation}") from error


def _refused(what: str, error: docker.errors.APIError) -> TestbedError:
    said = str(error.explanation)
    if "no space left on device" in said:
        return TestbedError(
            f"{what}: the engine's disk is full ({said}); `testbed gc` and `docker system df` list what can be removed"
        )
    return TestbedError(f"{what}: the engine refused it: {said}")


def _filter(name: str | None) -> str:
    return f"{NAME}={name}" if name else NAME


def _tar(files: Mapping[str, bytes], private: Sequence[str]) -> bytes:
    """An archive of `files` (absolute paths), with the folders they lie in."""
    buffer = io.BytesIO()
    now = int(time.time())
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mtime = len(content), now
            entry.mode = 0o600 if path in private else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
