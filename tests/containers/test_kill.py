import os
import random
import signal
import subprocess
import sys
import time

import pytest

from testbed.provision import state as states
from tests.containers.conftest import ROOT, cli, left_of

pytestmark = pytest.mark.containers
SEED = int(os.environ.get("TESTBED_KILL_SEED", "73"))
KILLS = int(os.environ.get("TESTBED_KILLS", "4"))
DOWN_KILLS = max(2, KILLS // 2)


@pytest.mark.parametrize("delay", [round(random.Random(SEED + n).uniform(0.3, 4.0), 2) for n in range(KILLS)])
def test_up_killed_at_any_point_leaves_nothing_that_gc_does_not_find(delay):
    process = subprocess.Popen(
        [sys.executable, "-m", "testbed.cli.main", "up", "two-brokers", "--name", "ci-kill"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    told = cli("gc")
    assert told.returncode == 0, told.stderr
    if states.load("ci-kill") is not None:  # it was up before it was killed, and is up to stay
        assert cli("down", "ci-kill").returncode == 0
    assert left_of("ci-kill") == []
    assert not states.folder("ci-kill").exists()


@pytest.mark.parametrize(
    "delay", [round(random.Random(SEED - n).uniform(0.5, 1.8), 2) for n in range(1, DOWN_KILLS + 1)]
)
def test_down_killed_at_any_point_leaves_nothing_that_gc_and_down_do_not_find(delay):
    told = cli("up", "two-brokers", "--name", "ci-kill-down")
    assert told.returncode == 0, told.stderr
    process = subprocess.Popen(
        [sys.executable, "-m", "testbed.cli.main", "down", "ci-kill-down"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert cli("gc").returncode == 0
    again = cli("down", "ci-kill-down")
    assert again.returncode == 0, again.stderr
    assert left_of("ci-kill-down") == []
    assert not states.folder("ci-kill-down").exists()
    assert "ci-kill-down" not in cli("ls").stdout


def test_up_after_a_killed_up_begins_anew():
    process = subprocess.Popen(
        [sys.executable, "-m", "testbed.cli.main", "up", "two-brokers", "--name", "ci-again"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(1.5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    told = cli("up", "two-brokers", "--name", "ci-again")
    assert told.returncode == 0, told.stderr
    assert cli("down", "ci-again").returncode == 0
    assert left_of("ci-again") == []


def test_an_interrupted_up_cleans_up_after_itself():
    process = subprocess.Popen(
        [sys.executable, "-m", "testbed.cli.main", "up", "two-brokers", "--name", "ci-term"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(1.5)
    process.send_signal(signal.SIGTERM)
    _out, told = process.communicate(timeout=60)
    assert process.returncode in (0, 130), told
    if process.returncode == 0:
        assert cli("down", "ci-term").returncode == 0
    assert left_of("ci-term") == []
