"""A command on a host gets its input while its outputs are read; a lost connection is closed before the next."""

import shlex
import subprocess
import threading

import paramiko
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from testbed.errors import TestbedError
from testbed.hosts import clock, ssh
from testbed.hosts.host import CommandFailed
from testbed.hosts.ssh import SshAddress, SshHost

ADDRESS = SshAddress("198.18.0.11", 22, "root", "id", "ssh-ed25519 AAAA")
WINDOW_BYTES = 100_000


class Echo:
    """A channel to `cat`, with a window in each direction: it reads its input only as its output is read."""

    def __init__(self):
        self.status_event = threading.Event()
        self._ready, self._held, self._ended = threading.Condition(), bytearray(), False
        self._timeout_s = None

    def settimeout(self, timeout_s):
        self._timeout_s = timeout_s

    def sendall(self, data):
        with self._ready:
            if not self._ready.wait_for(lambda: len(self._held) < WINDOW_BYTES, self._timeout_s or 5):
                raise TimeoutError
            self._held += data
            self._ready.notify_all()

    def shutdown_write(self):
        with self._ready:
            self._ended = True
            self._ready.notify_all()

    def recv(self, size):
        with self._ready:
            if not self._ready.wait_for(lambda: self._held or self._ended, self._timeout_s):
                raise TimeoutError
            data = bytes(self._held[:size])
            del self._held[:size]
            self._ready.notify_all()
            if not data:
                self.status_event.set()
            return data

    def recv_stderr(self, size):
        return b""

    def recv_exit_status(self):
        return 0

    def close(self):
        pass


class Deaf(Echo):
    """A channel to a command that neither reads nor writes nor ends."""

    def sendall(self, data):
        threading.Event().wait(self._timeout_s)
        raise TimeoutError

    def recv(self, size):
        threading.Event().wait(self._timeout_s)
        raise TimeoutError


def host(monkeypatch, channel):
    found = SshHost("b1", ADDRESS)
    monkeypatch.setattr(found, "_execute", lambda text: channel)
    return found


def test_a_command_that_writes_while_it_reads_does_not_block(monkeypatch):
    text = b"0123456789" * 100_000
    assert host(monkeypatch, Echo()).run("cat", stdin=text, timeout_s=10).stdout == text.decode()


def test_a_command_that_never_reads_its_input_times_out(monkeypatch):
    with pytest.raises(CommandFailed, match="not done after 0.1 s"):
        host(monkeypatch, Deaf()).run("sleep 60", stdin=bytes(1_000_000), timeout_s=0.1)


def test_a_lost_connection_is_closed_when_another_takes_its_place(monkeypatch):
    class Client:
        active, closed = True, False

        def get_transport(self):
            return self

        def is_active(self):
            return self.active

        def close(self):
            self.closed = True

    made = []
    found = SshHost("b1", ADDRESS)
    monkeypatch.setattr(found, "_connect", lambda address: made.append(Client()) or made[-1])
    assert found._transport() is found._transport() is made[0]
    made[0].active = False
    assert found._transport() is made[1]
    assert (made[0].closed, made[1].closed) == (True, False)


def test_a_server_that_hangs_up_in_the_middle_is_tried_again_and_then_named(monkeypatch):
    """paramiko raises EOFError, which is no OSError, when a server ends during the exchange of keys."""
    tried = []

    def connect(self, *_words, **_rest):
        tried.append(self)
        raise EOFError

    monkeypatch.setattr(paramiko.SSHClient, "connect", connect)
    monkeypatch.setattr(ssh, "_private_key", lambda path: None)
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAOuC04PN2BspjK7hmDNRWMkraFx2Jyr2J8UfW8+rRbX"
    host = SshHost("b1", SshAddress("198.18.0.11", 22, "root", "id", key), connect_timeout_s=0.1)
    with pytest.raises(TestbedError, match=r"b1: no SSH connection to 198.18.0.11:22 within 0 s: the server closed it"):
        host.run(["true"])
    assert len(tried) > 1


@pytest.mark.parametrize(
    "form", [serialization.PrivateFormat.OpenSSH, serialization.PrivateFormat.PKCS8], ids=("openssh", "pem")
)
def test_a_key_with_a_passphrase_is_an_error_that_names_the_agent(tmp_path, form):
    file = tmp_path / "id"
    lock = serialization.BestAvailableEncryption(b"secret")
    file.write_bytes(Ed25519PrivateKey.generate().private_bytes(serialization.Encoding.PEM, form, lock))
    with pytest.raises(TestbedError, match=r"id is encrypted: add it to the SSH agent \(ssh-add\), and leave key out"):
        ssh._private_key(str(file))


def test_a_clock_is_asked_in_the_language_of_sh_whatever_shell_the_user_has():
    """fish and tcsh have other loops; they read a quoted word as it is."""
    assert shlex.split(clock._SERVE)[:3] == ["exec", "sh", "-c"]
    done = subprocess.run(["sh", "-c", clock._SERVE], input="\n\n", capture_output=True, text=True, check=True)
    assert all(line.isdigit() for line in done.stdout.split()) and len(done.stdout.split()) == 2
