"""A host that is reached over SSH: a container of the testbed, or any machine."""

import io
import os
import shlex
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import paramiko

from testbed.errors import TestbedError
from testbed.hosts.host import CommandFailed, CommandResult

_TIMED_OUT = 124  # the exit status of timeout(1)
_NO_STATUS, _CUT_S = -1, 0.2
"""The exit status of a command that gave none; the time in which a lost connection is noticed as such, in seconds."""


@dataclass(frozen=True, slots=True)
class SshAddress:
    """The address of a host. The client pins the host key: an impostor is an error."""

    host: str
    port: int
    user: str
    private_key: Path
    host_key: str
    """The server's public key, `ssh-ed25519 AAAA…`."""


def _as_shell(command: str | Sequence[str]) -> str:
    return command if isinstance(command, str) else shlex.join(command)


class SshProcess:
    """A remote command tied to its channel: when the channel closes, the command gets SIGHUP."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def lines(self) -> Iterator[str]:
        """Yield each line of its standard output, until it ends or is stopped."""
        with self._channel.makefile("r") as stream:
            yield from stream

    def stop(self) -> None:
        """Close the channel; the command has no terminal and sees the end of its input."""
        self._channel.close()


class SshHost:
    """One SSH connection, opened at first use and left open; safe to use from several threads."""

    def __init__(self, name: str, address: SshAddress, *, connect_timeout_s: float = 15.0) -> None:
        self._name = name
        self._address = address
        self._connect_timeout_s = connect_timeout_s
        self._client: paramiko.SSHClient | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Return the host's name in the topology."""
        return self._name

    def _transport(self) -> paramiko.Transport:
        with self._lock:
            transport = self._client.get_transport() if self._client else None
            if transport is not None and transport.is_active():
                return transport
            self._client = self._connect()
            transport = self._client.get_transport()
            if transport is None:
                raise TestbedError(f"{self._name}: the SSH connection closed as soon as it was made")
            return transport

    def _connect(self) -> paramiko.SSHClient:
        """Connect and return the client. Wait for a server that still starts (refused), but not after a wrong key."""
        address = self._address
        kind, blob = address.host_key.split()[:2]
        key = paramiko.Ed25519Key.from_private_key_file(str(address.private_key))
        deadline = time.monotonic() + self._connect_timeout_s
        while True:
            client = paramiko.SSHClient()
            entry = address.host if address.port == 22 else f"[{address.host}]:{address.port}"
            line = paramiko.hostkeys.HostKeyEntry.from_line(f"{entry} {kind} {blob}")
            if line is None or line.key is None:
                raise TestbedError(f"{self._name}: the pinned host key is not a key: {address.host_key!r}")
            client.get_host_keys().add(entry, kind, line.key)
            client.set_missing_host_key_policy(paramiko.RejectPolicy())
            try:
                client.connect(
                    address.host,
                    port=address.port,
                    username=address.user,
                    pkey=key,
                    allow_agent=False,
                    look_for_keys=False,
                    timeout=2.0,
                    banner_timeout=5.0,
                    auth_timeout=10.0,
                )
            except (OSError, paramiko.ssh_exception.SSHException) as error:
                client.close()
                final = isinstance(error, paramiko.BadHostKeyException | paramiko.AuthenticationException)
                if final or time.monotonic() >= deadline:
                    raise TestbedError(
                        f"{self._name}: no SSH connection to {address.host}:{address.port} "
                        f"within {self._connect_timeout_s:.0f} s: {error}"
                    ) from error
                time.sleep(0.05)  # between two attempts; a closed port gives no event to wait for
            else:
                return client

    def session(self) -> paramiko.Channel:
        """Return a new channel on the connection, for uses other than `run` and `spawn`. Raise `TestbedError`."""
        try:
            return self._transport().open_session(timeout=10.0)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise TestbedError(f"{self._name}: the SSH connection was lost: {error}") from error

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float = 60.0,
        check: bool = True,
        stdin: bytes = b"",
    ) -> CommandResult:
        """See `Host.run`."""
        text = _as_shell(command)
        started = time.monotonic()
        channel = self.session()
        out, err = io.BytesIO(), io.BytesIO()
        timed_out = False
        try:
            channel.exec_command(text)
            if stdin:
                channel.sendall(stdin)
            channel.shutdown_write()
            # Both streams are drained together: otherwise a command that fills one of them would block.
            drain = threading.Thread(target=_copy, args=(channel.recv_stderr, err), daemon=True)
            drain.start()
            channel.settimeout(timeout_s)
            try:
                deadline = started + timeout_s
                while data := channel.recv(65536):
                    out.write(data)
                    channel.settimeout(max(0.001, deadline - time.monotonic()))
                if not channel.status_event.wait(max(0.0, deadline - time.monotonic())):
                    timed_out = True
            except TimeoutError:
                timed_out = True
            if not timed_out:
                drain.join(5.0)
            status = _TIMED_OUT if timed_out else channel.recv_exit_status()
            if status == _NO_STATUS and self._cut(channel):
                raise EOFError("it was cut before the command had ended")
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise TestbedError(f"{self._name}: the SSH connection was lost during `{text}`: {error}") from error
        finally:
            channel.close()
        stderr = err.getvalue().decode(errors="replace")
        if timed_out:
            stderr += f"\n(stopped: not done after {timeout_s:g} s)"
        result = CommandResult(
            text, status, out.getvalue().decode(errors="replace"), stderr, time.monotonic() - started
        )
        if timed_out or (check and status != 0):
            raise CommandFailed(self._name, result)
        return result

    def _cut(self, channel: paramiko.Channel) -> bool:
        """Return whether the connection of a channel without an exit status is gone; a killed command has none, too."""
        transport = channel.get_transport()
        transport.join(_CUT_S)
        return not transport.is_active()

    def spawn(self, command: str | Sequence[str]) -> SshProcess:
        """See `Host.spawn`."""
        channel = self.session()
        channel.exec_command(_as_shell(command))
        return SshProcess(channel)

    def put(self, content: bytes, path: str, *, mode: int = 0o644) -> None:
        """See `Host.put`."""
        quoted, temporary = shlex.quote(path), shlex.quote(path + ".partial")
        self.run(
            f"mkdir -p {shlex.quote(os.path.dirname(path) or '/')} && cat > {temporary}"  # noqa: PTH120 - a path on the host
            f" && chmod {mode:o} {temporary} && mv {temporary} {quoted}",
            stdin=content,
        )

    def get(self, path: str) -> bytes:
        """See `Host.get`."""
        try:
            with self._transport().open_sftp_client() as sftp, sftp.open(path, "rb") as file:
                return file.read()
        except (OSError, AttributeError, paramiko.SSHException) as error:
            raise TestbedError(f"{self._name}: cannot read {path}: {error}") from error

    def tail(self, path: str, *, lines: int = 100) -> str:
        """See `Host.tail`."""
        return self.run(f"tail -n {int(lines)} {shlex.quote(path)} 2>/dev/null || true").stdout

    def close(self) -> None:
        """See `Host.close`."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None


def _copy(receive: "object", into: io.BytesIO) -> None:
    """Copy one stream of a channel into `into` until the stream ends."""
    assert callable(receive)
    try:
        while data := receive(65536):
            into.write(data)
    except TimeoutError:
        return  # the command timed out; the caller uses the output so far
