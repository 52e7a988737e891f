"""A shell on a host in the user's own terminal; without a terminal, commands from standard input."""

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator

import paramiko

from testbed.errors import TestbedError
from testbed.hosts import SshHost

_CHUNK = 65536


def shell(host: SshHost) -> int:
    """Run root's login shell on `host` until it ends; return its exit status. Raise `TestbedError` when it fails.

    In a terminal, keys go to the host as they are pressed, Ctrl-C too, and the window's size follows. Piped input goes
    to the shell as the shell reads it, up to its end.
    """
    channel = host.session()
    try:
        status = _in_terminal(host, channel) if sys.stdin.isatty() and sys.stdout.isatty() else _piped(host, channel)
    except BrokenPipeError:
        raise  # of this process's own output: its reader ended
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise TestbedError(f"{host.name}: the SSH connection was lost: {error}") from error
    finally:
        channel.close()
    if status < 0:
        raise TestbedError(f"{host.name}: the shell ended without a status: it was killed, or the connection was lost")
    return status


def _begin(host: SshHost, channel: paramiko.Channel) -> None:
    """Start root's login shell; the user of a machine that exists may have to become root first."""
    if host.relocation is not None and host.relocation.sudo:
        channel.exec_command("sudo -n -i")
    else:
        channel.invoke_shell()


def _in_terminal(host: SshHost, channel: paramiko.Channel) -> int:
    terminal = sys.stdin.fileno()
    size = os.get_terminal_size(terminal)
    channel.get_pty(os.environ.get("TERM", "vt100"), size.columns, size.lines)
    _begin(host, channel)
    with _raw(terminal), _Feeder(channel, terminal) as feeder, feeder.resizing():
        _copy(channel, sys.stdout.fileno())
        return channel.recv_exit_status()


def _piped(host: SshHost, channel: paramiko.Channel) -> int:
    _begin(host, channel)
    errors = threading.Thread(
        target=_copy, args=(channel, sys.stderr.fileno()), kwargs={"stderr": True}, name="stderr", daemon=True
    )
    errors.start()
    with _Feeder(channel, sys.stdin.fileno()):
        _copy(channel, sys.stdout.fileno())
        errors.join()
        return channel.recv_exit_status()


def _copy(channel: paramiko.Channel, to: int, *, stderr: bool = False) -> None:
    """Write the host's output to a file descriptor until it ends."""
    while data := channel.recv_stderr(_CHUNK) if stderr else channel.recv(_CHUNK):
        while data:
            data = data[os.write(to, data) :]


@contextlib.contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Switch the terminal to raw mode within the block, and restore it afterwards."""
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class _Feeder:
    """A thread that sends the user's input. No other thread sends: a signal handler never waits for the channel."""

    def __init__(self, channel: paramiko.Channel, source: int) -> None:
        self._channel, self._source = channel, source
        self._bell, self._ring = os.pipe()
        self._stopping = False
        self._thread = threading.Thread(target=self._feed, name="stdin", daemon=True)

    def __enter__(self) -> "_Feeder":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopping = True
        self._channel.close()  # ends a blocked send
        os.write(self._ring, b"s")
        self._thread.join()
        os.close(self._bell)
        os.close(self._ring)

    @contextlib.contextmanager
    def resizing(self) -> Iterator[None]:
        """Keep the host's terminal as large as the user's within the block."""
        before = signal.signal(signal.SIGWINCH, lambda _signal, _frame: os.write(self._ring, b"w"))
        try:
            yield
        finally:
            signal.signal(signal.SIGWINCH, before)

    def _feed(self) -> None:
        with contextlib.suppress(OSError, paramiko.SSHException):  # the shell has ended and reads no more
            sources = [self._bell, self._source]
            while not self._stopping:
                ready, _, _ = select.select(sources, [], [])
                if self._bell in ready:
                    os.read(self._bell, 1)
                    if not self._stopping:
                        size = os.get_terminal_size(self._source)
                        self._channel.resize_pty(size.columns, size.lines)
                elif data := os.read(self._source, _CHUNK):
                    self._channel.sendall(data)
                else:
                    self._channel.shutdown_write()
                    sources = [self._bell]
