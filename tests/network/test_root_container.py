"""The root container's two ends: the agent as a process of its own, in place of a container."""

import json
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.network import root_agent, root_container
from testbed.network.root_container import CAPABILITIES, RootContainer, RootContainerGone, definition


class ProcessEngine:
    """Runs the agent as an ordinary process; frames its output as an engine does."""

    def __init__(self, program: str | None = None) -> None:
        self.program = program or Path(root_agent.__file__).read_text()
        self.process: subprocess.Popen[bytes] | None = None

    def start_attached(self, _definition: object) -> socket.socket:
        ours, theirs = socket.socketpair()
        self.process = process = subprocess.Popen(
            [sys.executable, "-c", self.program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def forward() -> None:
            while piece := theirs.recv(65536):
                stdin.write(piece)
                stdin.flush()
            stdin.close()

        def frame() -> None:
            while piece := stdout.read1(7):  # in pieces that cut answers apart
                theirs.sendall(struct.pack(">B3xI", 1, len(piece)) + piece)
            theirs.close()

        for work in (forward, frame):
            threading.Thread(target=work, daemon=True).start()
        return ours


@pytest.fixture
def container():
    engine = ProcessEngine()
    made = RootContainer(engine, "image")
    yield made
    made.close()
    assert engine.process.wait(5) == 0


def test_a_command_has_input_output_and_status(container):
    done = container.run(["sh", "-c", "cat; echo no >&2; exit 3"], stdin=b"\x00yes", timeout_s=5)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"\x00yes", b"no\n")


def test_commands_run_at_the_same_time(container):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(container.run(["cat", "/dev/stdin"], timeout_s=5)))
    with pytest.raises(subprocess.TimeoutExpired):
        container.run(["sleep", "60"], timeout_s=0.05)
    thread.start()
    assert container.run(["true"], timeout_s=5).returncode == 0
    thread.join(5)
    assert answers[0].returncode == 0


def test_a_program_that_is_absent_is_named(container):
    with pytest.raises(FileNotFoundError) as raised:
        container.run(["no-such-program"], timeout_s=5)
    assert raised.value.filename == "no-such-program"


def test_a_namespace_that_cannot_be_entered_is_an_error(container):
    with pytest.raises(OSError, match="No such file"):
        container.subscribe(0)


def test_an_end_is_told_with_the_last_words():
    container = RootContainer(ProcessEngine(greeting() + "raise SystemExit('out of memory')"), "image")
    with pytest.raises(RootContainerGone, match="has ended; was the engine stopped or restarted"):
        for _ in range(100):
            container.run(["true"], timeout_s=5)
    assert not container.alive


def greeting(net: str | None = None) -> str:
    own = str(Path("/proc/self/ns/net").readlink())
    return f"print({json.dumps({'id': 0, 'pid': 1, 'net': net or own})!r}, flush=True)\n"


def test_an_engine_in_another_network_is_refused():
    with pytest.raises(TestbedError, match="does not run in this machine's network"):
        RootContainer(ProcessEngine(greeting("net:[1]")), "image")


def test_its_definition_has_no_more_than_it_needs():
    host = definition("sha256:x")["HostConfig"]
    assert host["CapAdd"] == list(CAPABILITIES) == ["NET_ADMIN", "SYS_ADMIN", "SYS_PTRACE"]
    assert (host["NetworkMode"], host["PidMode"], host["AutoRemove"]) == ("host", "host", True)
    assert "Privileged" not in host
    assert "Binds" not in host


def test_one_is_started_for_a_process_and_again_when_it_has_ended(monkeypatch):
    made = []

    class Fake:
        alive = True

        @classmethod
        def start(cls):
            made.append(cls())
            return made[-1]

        def close(self):
            pass

    monkeypatch.setattr(root_container, "RootContainer", Fake)
    monkeypatch.setattr(root_container, "_current", None)
    assert root_container.root_container() is root_container.root_container()
    made[0].alive = False
    assert root_container.root_container() is made[1]
