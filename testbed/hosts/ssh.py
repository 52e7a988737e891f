"""A host that is reached over SSH: a container of the testbed, or any machine."""

import io
import logging
import os
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import paramiko

from testbed.errors import TestbedError
from testbed.hosts.host import CommandFailed, CommandResult, as_text
from testbed.hosts.relocation import PathRelocation

# A lost connection is an error with its own message; without a handler paramiko's log would be printed, too.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
_TIMED_OUT = 124  # the exit status of timeout(1)
_MOST_CONNECTIONS = 8
_CHUNK_BYTES = 32 * 1024
_NO_STATUS, _CUT_S = -1, 0.2
"""The exit status of a command that gave none; the time in which a lost connection is noticed as such, in seconds."""


@dataclass(frozen=True, slots=True)
class SshAddress:
    """The address of a host. The client pins the host key: an impostor is an error.

    Without a `private_key`, the user's SSH agent and usual keys are tried. `jump` is a host that the connection passes.
    """

    host: str
    port: int
    user: str
    private_key: str | None
    host_key: str
    """The server's public key, `ssh-ed25519 AAAA…`."""
    jump: "SshAddress | None" = None


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
    """An SSH connection, opened at first use and left open; safe to use from several threads.

    A server that allows no more sessions on a connection gets another one. On a machine that exists, `relocation` says
    where the testbed's own files are, and how its commands run.
    """

    def __init__(
        self,
        name: str,
        address: SshAddress,
        *,
        connect_timeout_s: float = 15.0,
        relocation: PathRelocation | None = None,
    ) -> None:
        self.name = name
        self._address = address
        self._connect_timeout_s = connect_timeout_s
        self.relocation = relocation
        self._clients: list[paramiko.SSHClient] = []
        self._jumps: list[paramiko.SSHClient] = []
        self._lock = threading.Lock()

    def _transport(self, number: int = 0) -> paramiko.Transport:
        with self._lock:
            transport = self._clients[number].get_transport() if number < len(self._clients) else None
            if transport is not None and transport.is_active():
                return transport
            for lost in self._clients[number : number + 1]:
                lost.close()
            self._clients[number : number + 1] = [self._connect(self._address)]
            transport = self._clients[number].get_transport()
            if transport is None:
                raise TestbedError(f"{self.name}: the SSH connection closed as soon as it was made")
            return transport

    def _connect(self, address: SshAddress) -> paramiko.SSHClient:
        """Connect and return the client. Wait for a server that still starts (refused), but not after a wrong key."""
        kind, blob = address.host_key.split()[:2]
        key = None if address.private_key is None else _private_key(address.private_key)
        deadline = time.monotonic() + self._connect_timeout_s
        while True:
            client = paramiko.SSHClient()
            entry = address.host if address.port == 22 else f"[{address.host}]:{address.port}"
            line = paramiko.hostkeys.HostKeyEntry.from_line(f"{entry} {kind} {blob}")
            if line is None or line.key is None:
                raise TestbedError(f"{self.name}: the pinned host key is not a key: {address.host_key!r}")
            client.get_host_keys().add(entry, kind, line.key)
            client.set_missing_host_key_policy(paramiko.RejectPolicy())
            try:
                through = None if address.jump is None else self._through(address.jump, address)
                client.connect(
                    address.host,
                    port=address.port,
                    username=address.user,
                    pkey=key,
                    allow_agent=key is None,
                    look_for_keys=key is None,
                    sock=through,
                    timeout=2.0,
                    banner_timeout=5.0,
                    auth_timeout=10.0,
                )
            except (OSError, EOFError, paramiko.SSHException) as error:  # EOFError: it hung up in the middle
                client.close()
                final = isinstance(error, paramiko.BadHostKeyException | paramiko.AuthenticationException)
                if final or time.monotonic() >= deadline:
                    raise TestbedError(
                        f"{self.name}: no SSH connection to {address.host}:{address.port} "
                        f"within {self._connect_timeout_s:.0f} s: {str(error) or 'the server closed it'}"
                    ) from error
                time.sleep(0.05)  # between two attempts; a closed port gives no event to wait for
            else:
                return client

    def _through(self, jump: SshAddress, to: SshAddress) -> paramiko.Channel:
        """Return a channel from the jump host to the server; the connection to the jump host stays open."""
        live = (each for each in self._jumps if (open_ := each.get_transport()) is not None and open_.is_active())
        client = next(live, None)
        if client is None:
            client = self._connect(jump)
            self._jumps.append(client)
        transport = client.get_transport()
        if transport is None:
            raise TestbedError(f"{self.name}: the SSH connection to {jump.host} closed as soon as it was made")
        return _tunnel(transport, to.host, to.port)

    def tunnel(self, host: str, port: int) -> paramiko.Channel:
        """Return a channel from this host to a server, as a jump host gives it. Raise `TestbedError`."""
        try:
            return _tunnel(self._transport(), host, port)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise TestbedError(f"{self.name} has no connection to {host}:{port}: {error}") from error

    def session(self) -> paramiko.Channel:
        """Return a new channel on the connection, for uses other than `run` and `spawn`. Raise `TestbedError`."""
        refused: Exception | None = None
        number, lost = 0, False
        while number < _MOST_CONNECTIONS:
            try:
                return self._transport(number).open_session(timeout=10.0)
            except paramiko.ChannelException as error:
                refused, number = error, number + 1  # the server allows no more sessions on this connection
            except (OSError, EOFError, paramiko.SSHException) as error:
                if lost:
                    raise TestbedError(f"{self.name}: the SSH connection was lost: {error}") from error
                lost = True  # nothing was begun on it: a new connection takes its place
        raise TestbedError(f"{self.name}: the SSH server opens no more sessions: {refused}")

    def _execute(self, text: str) -> paramiko.Channel:
        channel = self.session()
        try:
            channel.exec_command(text if self.relocation is None else self.relocation.command(text))
        except (OSError, EOFError, paramiko.SSHException) as error:
            channel.close()
            raise TestbedError(f"{self.name}: the SSH connection was lost before `{text}`: {error}") from error
        return channel

    def run(
        self, command: str | Sequence[str], *, timeout_s: float = 60.0, check: bool = True, stdin: bytes = b""
    ) -> CommandResult:
        """See `Host.run`."""
        text = as_text(command)
        started = time.monotonic()
        out, status, stderr = self._finish(text, timeout_s, stdin)
        result = CommandResult(text, status, out.decode(errors="replace"), stderr, time.monotonic() - started)
        if check and status != 0:
            raise CommandFailed(self.name, result)
        return result

    def _finish(self, text: str, timeout_s: float, stdin: bytes) -> tuple[bytes, int, str]:
        """Run a command line to its end; return its output, its exit status, and its errors as text.

        Raise `CommandFailed` on a timeout.
        """
        started = time.monotonic()
        channel = self._execute(text)
        out, err = io.BytesIO(), io.BytesIO()
        timed_out = False
        try:
            channel.settimeout(timeout_s)
            # The input is sent while both outputs are read: a command that writes much before it has read all of its
            # input would block otherwise, and so would one that fills one of its outputs.
            drain = threading.Thread(target=_copy, args=(channel.recv_stderr, err), daemon=True)
            drain.start()
            threading.Thread(target=_feed, args=(channel, stdin), daemon=True).start()
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
            raise TestbedError(f"{self.name}: the SSH connection was lost during `{text}`: {error}") from error
        finally:
            channel.close()
        stderr = err.getvalue().decode(errors="replace")
        if timed_out:
            stderr += f"\n(stopped: not done after {timeout_s:g} s)"
            output = out.getvalue().decode(errors="replace")
            raise CommandFailed(self.name, CommandResult(text, status, output, stderr, time.monotonic() - started))
        return out.getvalue(), status, stderr

    def _cut(self, channel: paramiko.Channel) -> bool:
        """Return whether the connection of a channel without an exit status is gone; a killed command has none, too."""
        transport = channel.get_transport()
        transport.join(_CUT_S)
        return not transport.is_active()

    def spawn(self, command: str | Sequence[str]) -> SshProcess:
        """See `Host.spawn`."""
        return SshProcess(self._execute(as_text(command)))

    def put(self, content: bytes, path: str, *, mode: int = 0o644) -> None:
        """See `Host.put`."""
        if self.relocation is not None:
            content = self.relocation.content(content)
        quoted, temporary = shlex.quote(path), shlex.quote(path + ".partial")
        self.run(
            f"mkdir -p {shlex.quote(os.path.dirname(path) or '/')} && cat > {temporary}"  # noqa: PTH120 - a path on the host
            f" && chmod {mode:o} {temporary} && mv {temporary} {quoted}",
            stdin=content,
        )

    def get(self, path: str) -> bytes:
        """See `Host.get`."""
        content, status, said = self._finish(f"cat {shlex.quote(path)}", 600.0, b"")
        if status != 0:
            raise TestbedError(f"{self.name}: cannot read {path}: {said.strip()}")
        return content

    def tail(self, path: str, *, lines: int = 100) -> str:
        """See `Host.tail`."""
        return self.run(f"tail -n {int(lines)} {shlex.quote(path)} 2>/dev/null || true").stdout

    def close(self) -> None:
        """See `Host.close`."""
        with self._lock:
            for client in (*self._clients, *self._jumps):
                client.close()
            self._clients.clear()
            self._jumps.clear()


def _tunnel(transport: paramiko.Transport, host: str, port: int) -> paramiko.Channel:
    return transport.open_channel("direct-tcpip", (host, port), ("", 0), timeout=10.0)


def _private_key(path: str) -> paramiko.PKey:
    try:
        return paramiko.PKey.from_path(path)
    except FileNotFoundError:
        raise TestbedError(f"{path}: there is no such private key") from None
    except (TypeError, paramiko.PasswordRequiredException):  # TypeError: as the library of keys says it
        raise TestbedError(f"{path} is encrypted: add it to the SSH agent (ssh-add), and leave key out") from None
    except (OSError, ValueError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
        raise TestbedError(f"{path} cannot be used as a private key: {error}") from error


def _feed(channel: paramiko.Channel, stdin: bytes) -> None:
    """Send a command its whole input, and the end of it.

    A command may end, or time out, before it has read everything; its exit status or the lost connection says so.
    """
    try:
        for at in range(0, len(stdin), _CHUNK_BYTES):  # the library copies what is left at every packet
            channel.sendall(stdin[at : at + _CHUNK_BYTES])
        channel.shutdown_write()
    except (OSError, EOFError, paramiko.SSHException):
        return


def _copy(receive: Callable[[int], bytes], into: io.BytesIO) -> None:
    """Copy one stream of a channel into `into` until the stream ends."""
    try:
        while data := receive(65536):
            into.write(data)
    except TimeoutError:
        return  # the command timed out; the caller uses the output so far
