"""A client of a container engine's HTTP interface, limited to the requests of set-up and image building.

What an engine says of itself differs between Docker and Podman, and between their releases (`EngineFacts`).

Standard library only: set-up builds the node image in parallel with the Python environment, without docker-py.
Testbeds use docker-py (`testbed.provision.containers`).
"""

import http.client
import io
import json
import os
import shutil
import socket
import struct
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import quote, urlencode, urlsplit

from testbed.errors import SoftwareError
from testbed.owner import Owner
from testbed.paths import cache_dir, state_dir

DEFAULT_SOCKET = Path("/var/run/docker.sock")
ROLE_LABEL, OWNER_LABEL, STATE_LABEL = "testbed.role", "testbed.owner", "testbed.state"


def helper_labels(role: str) -> dict[str, str]:
    """Return the labels of a container that this process works with: `gc` removes it once the process is dead."""
    return {ROLE_LABEL: role, OWNER_LABEL: str(Owner.this_process()), STATE_LABEL: str(state_dir())}


def tar_of(files: Mapping[str, bytes], private: Sequence[str] = ()) -> bytes:
    """Return a tar archive of path → content, as the engine takes it; only the owner can read the `private` ones."""
    buffer, now = io.BytesIO(), int(time.time())
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mtime = len(content), now
            entry.mode = 0o600 if path in private else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class Trouble(Enum):
    """The reason why the engine did not answer."""

    ABSENT = "absent"  # no socket: not installed, or not started
    SILENT = "silent"  # a socket without a listener
    DENIED = "denied"  # a socket this user may not open
    ELSEWHERE = "elsewhere"  # an address that is not on this machine
    FAILED = "failed"  # it answered with an error


class EngineError(SoftwareError):
    """The engine did not answer, or refused; `.trouble` says which, `.status` its HTTP status (0: none)."""

    def __init__(self, message: str, trouble: Trouble, status: int = 0) -> None:
        super().__init__(message)
        self.trouble = trouble
        self.status = status


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float | None) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@dataclass(frozen=True, slots=True)
class EngineSocket:
    """A container engine at `address`: `unix:///path` or `tcp://127.0.0.1:port`."""

    address: str

    @classmethod
    def from_environment(cls) -> "EngineSocket":
        """Return the engine that DOCKER_HOST names, else the one at the default socket."""
        return cls(os.environ.get("DOCKER_HOST") or f"unix://{DEFAULT_SOCKET}")

    def ping(self, timeout_s: float = 5.0) -> None:
        """Wait until the engine answers. Raise EngineError when it does not."""
        with self._call("GET", "/_ping", timeout_s=timeout_s) as response:
            response.read()

    def get(self, path: str) -> Any:
        """Return the JSON document at `path`."""
        with self._call("GET", path) as response:
            return json.load(response)

    def find_image(self, reference: str) -> str | None:
        """Return the id of a local image, or None when there is no such image."""
        try:
            return str(self._image(reference)["Id"])
        except EngineError as error:
            if error.status == 404:
                return None
            raise

    def image_labels(self, reference: str) -> Mapping[str, str]:
        """Return the labels of a local image."""
        return dict(self._image(reference)["Config"]["Labels"] or {})

    def image_architecture(self, reference: str) -> str:
        """Return the architecture of a local image, by Go's name: amd64, arm64."""
        return str(self._image(reference)["Architecture"])

    def _image(self, reference: str) -> Any:
        return self.get(f"/images/{quote(reference, safe='/:')}/json")

    def import_image(self, tar: BinaryIO, tag: str, changes: tuple[str, ...]) -> None:
        """Make an image from a root file system's tar; `changes` are Dockerfile lines such as `LABEL a=b`."""
        # The name with its tag in `repo`: Podman ignores a parameter `tag` here.
        query = urlencode([("fromSrc", "-"), ("repo", tag), *(("changes", change) for change in changes)])
        with self._call("POST", f"/images/create?{query}", body=tar) as response:
            _read_progress(response)

    def pull_image(self, reference: str) -> None:
        """Pull an image from its registry."""
        name, colon, tag = reference.rpartition(":")
        if not colon or "/" in tag:  # a colon before a slash belongs to a registry's port
            name, tag = reference, "latest"
        with self._call("POST", "/images/create", {"fromImage": name, "tag": tag}) as response:
            _read_progress(response)

    def build_image(self, context: bytes, log: BinaryIO) -> str:
        """Build an image from a context's tar, in the machine's network; write the output to `log`. Return its id.

        The engine's cache of steps is not used: it would install the packages of an earlier day.
        """
        query = urlencode({"networkmode": "host", "nocache": "1", "rm": "1", "forcerm": "1", "q": "0"})
        built = ""
        with self._call("POST", f"/build?{query}", body=io.BytesIO(context)) as response:
            for document in _progress(response):
                log.write(str(document.get("stream", "")).encode())
                built = str((document.get("aux") or {}).get("ID", built))
        if not built:
            raise EngineError("the engine built an image and did not name it", Trouble.FAILED)
        return built

    def remove_image(self, image_id: str) -> None:
        """Remove an image without tags, with its layers."""
        self._send("DELETE", f"/images/{image_id}", {"force": "1"})

    def registry_gives(self, reference: str) -> bool:
        """Return whether the image's registry answers the engine and has the image; nothing is pulled."""
        path = f"/distribution/{quote(reference, safe='/:')}/json"
        try:
            with self._call("GET", path, timeout_s=5.0) as response:
                response.read()
        except EngineError:
            return False
        return True

    def copy_out(self, image: str, path: str, target: Path) -> None:
        """Write the file at `path` in an image to `target`. Raise EngineError when the image has no such file."""
        with (
            self._created({"Image": image, "Cmd": ["-"], "Labels": helper_labels("copy")}) as made,
            self._call("GET", f"/containers/{made}/archive", {"path": path}) as response,
            tarfile.open(fileobj=response, mode="r|") as archive,
        ):
            entry = archive.next()
            source = archive.extractfile(entry) if entry is not None else None
            if source is None:
                raise EngineError(f"{path} in {image} is no file", Trouble.FAILED)
            with target.open("wb") as stream:
                shutil.copyfileobj(source, stream)

    @contextmanager
    def files_of_image(self, image_id: str) -> Iterator[BinaryIO]:
        """Yield the whole file system of a local image as a tar stream; start none of its programs."""
        # An image need not name a command; a container cannot be made without one.
        with (
            self._created({"Image": image_id, "Cmd": ["true"], "Labels": helper_labels("files")}) as made,
            self._call("GET", f"/containers/{made}/export") as response,
        ):
            yield cast(BinaryIO, response)

    @contextmanager
    def container(self, definition: Mapping[str, Any]) -> Iterator["Container"]:
        """Start a container and yield it; remove it at the end in any case."""
        with self._created(definition) as made:
            self._send("POST", f"/containers/{made}/start")
            yield Container(self, made)

    def start_attached(self, definition: Mapping[str, Any]) -> socket.socket:
        """Start a container and return a connection to its standard input and its output, which has headers.

        The container's standard input ends with the connection. Leave nothing behind when it cannot be started.
        """
        made = self._create(definition)
        connection: socket.socket | None = None
        try:
            connection = self._attach(made)
            self._send("POST", f"/containers/{made}/start")
        except BaseException:
            if connection is not None:
                connection.close()
            with suppress(EngineError):  # the engine may have removed it already
                self._remove(made)
            raise
        return connection

    @contextmanager
    def _created(self, definition: Mapping[str, Any]) -> Iterator[str]:
        """Create a container and yield its id; remove it at the end in any case."""
        made = self._create(definition)
        try:
            yield made
        finally:
            self._remove(made)

    def _create(self, definition: Mapping[str, Any]) -> str:
        with self._call("POST", "/containers/create", json_body=definition) as response:
            return str(json.load(response)["Id"])

    def _remove(self, container: str) -> None:
        self._send("DELETE", f"/containers/{container}", {"force": "1", "v": "1"})

    def _send(self, method: str, path: str, query: Mapping[str, str] | None = None) -> None:
        with self._call(method, path, query):
            pass

    def _attach(self, container: str) -> socket.socket:
        """Return the connection after the engine has left HTTP on it, which `http.client` cannot express."""
        connection = self._connection(None)
        path = f"/containers/{container}/attach?stream=1&stdin=1&stdout=1&stderr=1"
        head = b""
        try:
            connection.connect()
            connection.sock.sendall(
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
                "Content-Length: 0\r\n\r\n".encode()
            )
            # One byte at a time: the first byte after the head belongs to the container.
            while not head.endswith(b"\r\n\r\n"):
                byte = connection.sock.recv(1)
                if not byte:
                    raise ConnectionResetError
                head += byte
        except OSError as error:
            connection.close()
            raise self._explained(error) from error
        status = int(head.split(maxsplit=2)[1])
        if status not in (http.HTTPStatus.SWITCHING_PROTOCOLS, http.HTTPStatus.OK):
            connection.close()
            raise EngineError(f"the engine answered {status} to an attachment", Trouble.FAILED, status)
        return cast(socket.socket, connection.sock)

    @contextmanager
    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: BinaryIO | None = None,
        json_body: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self._connection(timeout_s)
        headers: dict[str, str] = {}
        data: BinaryIO | bytes | None = body
        if json_body is not None:
            data = json.dumps(json_body).encode()
            headers["Content-Type"] = "application/json"
        elif body is not None:
            headers["Content-Type"] = "application/x-tar"
        try:
            try:
                connection.request(
                    method,
                    f"{path}?{urlencode(query)}" if query else path,
                    body=data,
                    headers=headers,
                    encode_chunked=body is not None,
                )
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise self._explained(error) from error
            if response.status >= 400:
                raise EngineError(_reason(response), Trouble.FAILED, response.status)
            try:
                yield response
            except (TimeoutError, ConnectionError, http.client.HTTPException) as error:
                raise self._explained(error) from error  # the answer broke off, or its end did not come
        finally:
            connection.close()

    def _connection(self, timeout_s: float | None) -> http.client.HTTPConnection:
        parts = urlsplit(self.address)
        if parts.scheme == "unix":
            return _UnixConnection(parts.path, timeout_s)
        if parts.scheme == "tcp" and parts.hostname in ("localhost", "127.0.0.1", "::1"):
            return http.client.HTTPConnection(parts.hostname, parts.port or 2375, timeout=timeout_s)
        raise EngineError(
            f"DOCKER_HOST={self.address}: the engine must be on this machine "
            "(unix:///path or tcp://127.0.0.1:port), because the testbed puts its own links into containers",
            Trouble.ELSEWHERE,
        )

    def _explained(self, error: Exception) -> EngineError:
        if isinstance(error, FileNotFoundError):
            return EngineError(f"no container engine at {self.address}", Trouble.ABSENT)
        if isinstance(error, ConnectionRefusedError):
            return EngineError(f"nothing listens at {self.address}", Trouble.SILENT)
        if isinstance(error, ConnectionResetError):  # the engine ended during the request
            return EngineError(f"the engine at {self.address} closed the connection", Trouble.SILENT)
        if isinstance(error, PermissionError):
            return EngineError(f"{self.address}: permission denied", Trouble.DENIED)
        return EngineError(f"{self.address}: {error or type(error).__name__}", Trouble.FAILED)


def have_image(engine: EngineSocket, reference: str) -> str:
    """Return the id of an image that the engine has, or pulls. Raise EngineError when it can get none."""
    found = engine.find_image(reference)
    if found is None:
        engine.pull_image(reference)
        found = engine.find_image(reference)
    if found is None:
        raise EngineError(f"the engine pulled {reference} but does not list it", Trouble.FAILED)
    return found


@dataclass(frozen=True, slots=True)
class Container:
    """A running container."""

    engine: EngineSocket
    id: str

    def output(self) -> Iterator[str]:
        """Yield the lines of standard output and error together, until the container ends."""
        with self.engine._call(
            "GET", f"/containers/{self.id}/logs", {"follow": "1", "stdout": "1", "stderr": "1"}
        ) as response:
            rest = b""
            # Without a terminal each piece has a header: stream, three zeros, length (big endian).
            while header := response.read(8):
                rest += response.read(struct.unpack(">4xI", header)[0])
                *lines, rest = rest.split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
            if rest:
                yield rest.decode(errors="replace")

    def signal(self, name: str) -> None:
        """Send a signal such as SIGTERM to its first process."""
        self.engine._send("POST", f"/containers/{self.id}/kill", {"signal": name})

    def wait(self, timeout_s: float) -> int:
        """Return the exit code, once the container has ended."""
        with self.engine._call("POST", f"/containers/{self.id}/wait", timeout_s=timeout_s) as response:
            return int(json.load(response)["StatusCode"])


def _reason(response: http.client.HTTPResponse) -> str:
    text = response.read().decode(errors="replace")
    try:
        said = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return f"the engine answered {response.status}: {text[:200]}"
    return unreadable_cache(said) or said


def unreadable_cache(said: str) -> str:
    """Return the remedy with an engine's words where it may not mount the cache; empty for anything else it says."""
    if "permission denied" not in said.lower() or str(cache_dir()) not in said:
        return ""
    return (
        f"the engine may not read the cache ({said}): root may not on NFS with root_squash, and a snap may not read a "
        "hidden folder; set XDG_CACHE_HOME to a folder that the engine may read"
    )


def _progress(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Yield the progress documents of a stream. Raise an error when one of them has the engine's error."""
    for line in response:
        if line.strip():
            document = json.loads(line)
            if "error" in document:
                raise EngineError(str(document["error"]), Trouble.FAILED)
            yield document


def _read_progress(response: http.client.HTTPResponse) -> None:
    for _document in _progress(response):
        pass


OLDEST: Mapping[str, tuple[int, ...]] = {"Docker": (20, 10), "Podman": (4, 3)}
"""The oldest release of each engine on which a testbed was brought up."""
ARCHITECTURES: Mapping[str, str] = {"amd64": "x86_64", "arm64": "aarch64"}
"""Go's name of an architecture → the kernel's."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The facts of one engine that decide whether testbeds work on it."""

    kind: str
    version: str
    rootless: bool
    desktop: bool
    """Whether it runs in a virtual machine of its own: Docker Desktop."""
    architecture: str
    """As the kernel names it: x86_64, aarch64."""
    pools: tuple[str, ...]
    """The address pools of networks without declared addresses; empty where the engine does not say."""
    host: str = ""
    """The host name of its machine; empty where the engine does not say."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """Return the reasons why testbeds cannot work on this engine, each with its remedy."""
        found = []
        numbers = tuple(int(part) for part in self.version.split("+")[0].split("-")[0].split(".")[:2] if part.isdigit())
        oldest = OLDEST.get(self.kind)
        if oldest is not None and numbers < oldest:
            found.append(f"a release from {'.'.join(map(str, oldest))} on is missing: install a newer {self.kind}")
        if self.rootless:
            found.append(
                "root is missing, so it cannot link hosts to this machine: use the engine of the system "
                f"({_system_socket(self.kind)})"
            )
        here = os.uname().nodename
        if self.desktop:
            found.append(f"{_NOT_HERE} in a virtual machine of its own: {_ENGINE_HERE}")
        elif self.host not in ("", here) and not _has_bridges():
            found.append(
                f"{_NOT_HERE} on {self.host}, and this process on {here}, in a virtual machine or a container: "
                f"{_ENGINE_HERE}, or run the testbed on {self.host}"
            )
        return tuple(found)


def _has_bridges(devices: Path = Path("/sys/class/net")) -> bool:
    """Return whether a bridge is here, as an engine makes: this may be the engine's network under another host name."""
    return any(devices.glob("*/bridge"))


_NOT_HERE = "this machine's network is missing, since it runs"
_ENGINE_HERE = "install an engine in this Linux, and unset DOCKER_HOST or name its socket there"


def facts(version: Mapping[str, Any], info: Mapping[str, Any]) -> EngineFacts:
    """Return the facts in the engine's answers to `/version` and `/info`."""
    components = [str(each.get("Name", "")) for each in version.get("Components") or []]
    podman = any(name.startswith("Podman") for name in components)
    options: Sequence[str] = info.get("SecurityOptions") or []
    return EngineFacts(
        kind="Podman" if podman else "Docker",
        version=str(version.get("Version", "")),
        rootless=any("name=rootless" in each for each in options),
        desktop="Docker Desktop" in str(info.get("OperatingSystem", "")),
        architecture=kernel_name(str(info.get("Architecture", ""))),
        pools=tuple(f"{each['Base']} by /{each['Size']}" for each in info.get("DefaultAddressPools") or []),
        host=str(info.get("Name") or ""),
    )


def engine_folder() -> Path:
    """Return the engine's folder of containers."""
    try:
        return Path(str(EngineSocket.from_environment().get("/info")["DockerRootDir"]))
    except EngineError:
        return Path("/var/lib/docker")


def kernel_name(architecture: str) -> str:
    """Return the kernel's name of an architecture, for Go's name or its own."""
    return ARCHITECTURES.get(architecture, architecture)


def _system_socket(kind: str) -> str:
    return {
        "Podman": "sudo systemctl start podman.socket; DOCKER_HOST=unix:///run/podman/podman.sock",
        "Docker": "DOCKER_HOST=unix:///var/run/docker.sock",
    }.get(kind, "its socket in DOCKER_HOST")
