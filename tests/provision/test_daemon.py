"""A process on a host: found again, asked to end, or ended at once."""

import os
import re
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.errors import TestbedError
from testbed.hosts import CommandFailed, CommandResult, Daemon
from testbed.kafka.node import LOG, PID_FILE, Node
from testbed.probes.logwatch import process_ends
from testbed.provision.testbed import Testbed
from testbed.topology.jvm import Jvm
from testbed.wait import wait_until
from tests.faults.test_stores import LocalHost


def ignores_term(pid):
    ignored = re.search(r"^SigIgn:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]
    return bool(int(ignored, 16) >> (signal.SIGTERM - 1) & 1)


@pytest.fixture
def deaf(tmp_path):
    """One that does not end when it is asked to."""
    (tmp_path / "run").mkdir()
    daemon = Daemon(
        LocalHost(tmp_path),
        "Deaf",
        ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"],
        pid_file="/run/deaf.pid",
        log="/run/deaf.log",
    )
    daemon.start()
    wait_until(lambda: ignores_term(daemon.pid()), 5, 0.01, "the shell to ignore SIGTERM")
    yield daemon
    daemon.kill()


def test_what_is_killed_is_gone_and_killing_nothing_is_nothing(deaf):
    assert deaf.pid() is not None
    deaf.kill()
    assert deaf.pid() is None
    deaf.kill()
    with pytest.raises(TestbedError, match="Deaf does not run"):
        deaf.signal("TERM")


def test_what_does_not_end_when_asked_is_told_and_killed(deaf):
    with pytest.raises(TestbedError, match="to end after SIGTERM"):
        deaf.stop(timeout_s=0.3)
    deadline = time.monotonic() + 5
    while deaf.pid() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert deaf.pid() is None


def test_a_server_that_was_started_is_found_at_once_under_its_own_number(tmp_path):
    """A look before its number is on file would take it for one that has died."""
    (tmp_path / "run").mkdir()
    daemon = Daemon(LocalHost(tmp_path), "Slow", ["sleep", "60"], pid_file="/run/slow.pid", log="/run/slow.log")
    for _ in range(20):
        daemon.start()
        pid = daemon.pid()
        assert pid is not None
        command = Path(f"/proc/{pid}/cmdline")
        wait_until(lambda command=command: command.read_text().startswith("sleep"), 5, 0.01, "the server's command")
        assert os.getsid(pid) == pid
        daemon.start()
        assert daemon.pid() == pid
        daemon.kill()


def test_what_ends_by_itself_before_it_is_asked_to_has_stopped():
    """It was there at the first look, and is gone before the signal."""
    seen, sent = ["7", ""], []

    def run(command, *, check=True, **_rest):
        if isinstance(command, str):
            return CommandResult(command, 0, seen.pop(0) if seen else "", "", 0.0)
        sent.append((command, check))
        return CommandResult("kill", 1, "", "No such process", 0.0)

    Daemon(SimpleNamespace(name="b1", run=run), "Kafka", ["kafka"], pid_file="/run/k.pid", log="/run/k.log").stop()
    assert sent == [(["kill", "-TERM", "7"], False)]


@pytest.mark.parametrize(
    ("command", "signals", "status"),
    [
        (["sleep", "61.7"], ["KILL"], 137),
        (["sleep", "61.7"], ["TERM"], 143),
        (["sh", "-c", "sleep 0.5; exit 3"], [], 3),
    ],
)
def test_how_a_kafka_process_ended_is_in_its_log(tmp_path, command, signals, status):
    (tmp_path / "run").mkdir()
    node = Node(LocalHost(tmp_path), command)
    log, begun_us = Path(f"{tmp_path}{LOG}"), time.time_ns() // 1000

    def ends():
        return process_ends(log.read_text()) if log.exists() else ()

    for number in (1, 2):  # a process that is started again ends again
        node.prefixed(["env", "TZ=Asia/Tokyo"]).start()
        assert node.pid() is not None
        for each in signals:
            node.signal(each)
        wait_until(lambda number=number: len(ends()) == number, 5, 0.01, "the line of the end")
    assert [end.status for end in ends()] == [status, status]
    # The line has its instant in milliseconds.
    assert all(begun_us - 1000 <= end.ts_us <= time.time_ns() // 1000 for end in ends())
    assert node.pid() is None


@pytest.mark.parametrize(
    ("end", "signals"),
    [
        (lambda node: node.kill(), ["KILL"]),
        (lambda node: node.stop(timeout_s=5), ["TERM"]),
        (lambda node: [node.signal(each) for each in ("STOP", "CONT", "KILL")], ["KILL"]),
    ],
    ids=["kill", "stop", "signal"],
)
def test_each_signal_that_ends_kafka_is_noted_before_it_is_sent(tmp_path, end, signals):
    (tmp_path / "run").mkdir()
    noted = []

    def note(signal):
        assert node.pid() is not None
        noted.append(signal)

    node = Node(LocalHost(tmp_path), ["sleep", "63.7"], note)
    node.start()
    end(node)
    assert noted == signals
    wait_until(lambda: node.pid() is None, 5, 0.01, "the end")
    node.stop()
    node.kill()
    assert noted == signals, "what does not run gets no signal"


def test_a_kafka_that_does_not_end_when_asked_gets_two_signals(tmp_path):
    (tmp_path / "run").mkdir()
    noted = []
    node = Node(LocalHost(tmp_path), ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], noted.append)
    node.start()
    wait_until(lambda: ignores_term(node.pid()), 5, 0.01, "the shell to ignore SIGTERM")
    with pytest.raises(TestbedError, match="to end after SIGTERM"):
        node.stop(timeout_s=0.3)
    assert noted == ["TERM", "KILL"]


def test_the_nodes_of_a_testbed_tell_it_what_they_end():
    sent, noted = [], []

    def run(command, **_rest):
        sent.append(command)
        return CommandResult("p", 0, "7" if isinstance(command, str) else "", "", 0.0)

    testbed = SimpleNamespace(
        state=SimpleNamespace(kafka={"b1": "4.3.1"}, defects={}),
        topology=SimpleNamespace(host=lambda _name: SimpleNamespace(jvm=Jvm())),
        software=SimpleNamespace(kafka=lambda _version: SimpleNamespace(command=("java", "-cp", "jars"))),
        hosts={"b1": SimpleNamespace(name="b1", run=run, relocation=None)},
        ending=lambda host, signal: noted.append((host, signal)),
    )
    Testbed.node(testbed, "b1").signal("KILL")
    assert (noted, sent[-1]) == ([("b1", "KILL")], ["kill", "-KILL", "7"])


def test_the_shell_that_waits_for_kafka_does_not_have_its_command_line_and_is_no_part_of_its_session(tmp_path):
    (tmp_path / "run").mkdir()
    node = Node(LocalHost(tmp_path), ["sleep", "62.3"])
    node.start()
    pid = node.pid()
    status = Path(f"/proc/{pid}/status").read_text()
    parent = int(re.search(r"^PPid:\s*(\d+)$", status, re.MULTILINE)[1])
    assert Path(f"/proc/{parent}/cmdline").read_bytes() == b"sh\0"
    assert (os.getsid(pid), os.getsid(parent)) == (pid, parent)
    assert Path(f"{tmp_path}{PID_FILE}").read_text().strip() == str(pid)
    node.kill()


@pytest.mark.parametrize("at_end", ["", "true"], ids=["plain", "with a shell that waits"])
def test_a_number_that_cannot_be_written_is_an_error_of_the_host(tmp_path, at_end):
    """Nothing else may say so: a server without a number counts as one that has died."""
    (tmp_path / "run").mkdir()
    command, host = ["sleep", "0.2"], LocalHost(tmp_path)
    with pytest.raises(CommandFailed, match=r"none/kafka\.pid"):
        Daemon(host, "Kafka", command, pid_file="/run/none/kafka.pid", log="/run/kafka.log", at_end=at_end).start()
