"""An `up` that is interrupted or killed, an SSH connection that is cut: nothing is left, no answer is made up."""

import signal
import threading
import time

import pytest

from testbed.errors import TestbedError
from testbed.wait import wait_for
from tests.containers.conftest import cli, left_of, start

pytestmark = pytest.mark.containers


def _cut(testbed, host):
    """End every SSH session of a host, but not its server."""
    testbed.hosts[host].run(
        "ps -eo pid=,args= | awk '/sshd: / && !/listener/ {print $1}' | xargs -r kill -9", check=False
    )


@pytest.mark.parametrize("check", [True, False])
def test_a_command_whose_connection_is_cut_is_an_error_and_the_next_connects_again(three, check):
    from testbed.hosts import SshHost
    from testbed.provision.testbed import Testbed

    other = Testbed.attach(three.name)
    assert isinstance(three.hosts["b2"], SshHost)
    failed = []
    seconds = 30 + check  # the sleep of the other case outlives its connection

    def command():
        try:
            failed.append(other.hosts["b2"].run(f"sleep {seconds}; echo done", check=check))
        except TestbedError as error:
            failed.append(error)

    running = threading.Thread(target=command)
    running.start()
    three.hosts["b2"].run(f"until pgrep -xf 'sleep {seconds}' > /dev/null; do :; done")
    begun = time.monotonic()
    with pytest.raises(TestbedError, match="connection was lost"):
        _cut(three, "b2")
    running.join(10)
    assert time.monotonic() - begun < 10
    (error,) = failed
    assert isinstance(error, TestbedError), error
    assert f"b2: the SSH connection was lost during `sleep {seconds}" in str(error)
    assert other.hosts["b2"].run("echo again").stdout == "again\n"
    other.close()


@pytest.mark.parametrize("after_s", [1.5, pytest.param(4.0, marks=pytest.mark.nightly)])
def test_an_up_that_is_interrupted_twice_leaves_nothing(after_s):
    process = start("up", "two-brokers", "--name", "ci-twice")
    assert process.stderr.readline()
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _out, told = process.communicate(timeout=60)
    assert "Traceback" not in told
    if process.returncode == 0:
        assert cli("down", "ci-twice").returncode == 0
    elif left_of("ci-twice"):
        assert cli("gc").returncode == 0
    assert left_of("ci-twice") == []


def test_up_after_a_killed_up_begins_anew():
    process = start("up", "two-brokers", "--name", "ci-again")
    wait_for(lambda: left_of("ci-again"), bool, 60, 0.1, "some of it to be there")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    told = cli("up", "two-brokers", "--name", "ci-again")
    assert told.returncode == 0, told.stderr
    assert cli("down", "ci-again").returncode == 0
    assert left_of("ci-again") == []


def test_an_interrupted_up_cleans_up_after_itself():
    process = start("up", "two-brokers", "--name", "ci-term")
    # From its first line of progress on it puts away what it has begun.
    assert process.stderr.readline()
    wait_for(lambda: left_of("ci-term"), bool, 60, 0.1, "some of it to be there")
    process.send_signal(signal.SIGTERM)
    _out, told = process.communicate(timeout=60)
    assert process.returncode in (0, 130), told
    if process.returncode == 0:
        assert cli("down", "ci-term").returncode == 0
    assert left_of("ci-term") == []
