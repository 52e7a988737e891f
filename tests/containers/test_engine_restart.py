"""The engine is restarted for real, under a testbed that is up and one that is just being made.

Whatever runs on the engine ends with it. So this is done only to an engine that this project's own set-up has started,
and only while nobody else's containers run on it; otherwise the test says so and is skipped.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.provision import state as states
from testbed.provision.containers import Engine
from testbed.provision.machine import attached_devices
from testbed.setup.checks.engine import ContainerEngine
from testbed.wait import wait_for
from tests.containers.conftest import ROOT, cli, left_of
from tests.containers.kills import TOPOLOGY, everything

pytestmark = [pytest.mark.containers, pytest.mark.alone]
PID_FILE = Path("/run/docker.pid")
MINE = ("ci-engine", "ci-engine-up")
STOPS_S = 40.0


def dockerd() -> int | None:
    """The engine's process; None when it does not run, or is not told where it is told."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(PID_FILE.read_text())
        return pid if Path(f"/proc/{pid}/comm").read_text().strip() == "dockerd" else None
    return None


@pytest.fixture
def restart():
    """Stops the engine with a signal and starts it as set-up does; skips where that may not be done."""
    pid = dockerd()
    if pid is None or os.environ.get("DOCKER_HOST"):
        pytest.skip(f"the engine is not one that {PID_FILE} names: it is not ours to restart")
    log = Path(f"/proc/{pid}/fd/1").readlink()
    if "testbed" not in log.parts or log.parts[-2:] != ("logs", "dockerd.log"):
        pytest.skip("the engine was not started by this project's set-up: restarting it would end others' containers")
    api = Engine()
    others = [each["Names"][0] for each in api._api.containers()]
    api.close()
    if others:
        pytest.skip(f"containers run that a restart of the engine would end: {', '.join(others)}")

    def start():
        with pytest.MonkeyPatch.context() as patch:
            # It writes where it wrote, and not into this test's folder.
            patch.setattr("testbed.setup.checks.engine.state_dir", lambda: log.parents[1])
            ContainerEngine().fix()

    def restart(how):
        os.kill(pid, how)
        # It takes its containers with it, one after the other.
        wait_for(lambda: state_of(pid), lambda state: state in ("", "Z"), STOPS_S, 0.05, "the engine to stop")
        start()

    yield restart
    start()  # whatever happened: it answers when the next test begins


def state_of(pid):
    """The letter of a process's state; empty when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@pytest.fixture
def topology(tmp_path):
    path = tmp_path / "killed.yaml"
    path.write_text(TOPOLOGY)
    return str(path)


@pytest.fixture
def clean():
    yield
    for name in MINE:
        cli("down", name)


@pytest.mark.parametrize(
    "how", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.nightly)], ids=lambda how: how.name
)
def test_an_engine_restarted_under_a_testbed_and_during_up(clean, restart, topology, how):
    before = everything()
    told = cli("up", topology, "--name", "ci-engine")
    assert told.returncode == 0, told.stderr
    command = [sys.executable, "-m", "testbed.cli.main", "up", topology, "--name", "ci-engine-up"]
    making = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(left_of("ci-engine-up")), lambda found: found > 3, 30, 0.1, "its containers")
    begun = time.monotonic()
    restart(how)
    print(f"the engine was away for {time.monotonic() - begun:.1f} s")

    # What was being made: says why it failed, and leaves nothing.
    _out, said = making.communicate(timeout=90)
    print(f"`up` ended {time.monotonic() - begun:.1f} s after the restart began: {said}")
    assert making.returncode == 70, said
    assert "the container engine was stopped or restarted" in said or "stopped answering" in said
    assert left_of("ci-engine-up") == []
    assert not states.folder("ci-engine-up").exists()

    # What was up: is told to be gone, by whom, and what to do.
    shown = cli("status", "ci-engine")
    ended = "all its containers ended by "
    assert (shown.returncode, ended in shown.stdout) == (1, True), shown.stdout + shown.stderr
    refused = cli("exec", "ci-engine", "b1", "--", "true")
    assert refused.returncode == 70
    assert f"testbed ci-engine is not whole: {ended}" in refused.stderr
    assert "the container engine was stopped or restarted; `testbed down ci-engine` removes" in refused.stderr
    assert "garbage: all its containers have ended" in cli("ls").stdout

    # `up` makes it anew in its place; `gc` would have removed it.
    assert cli("gc", "--dry-run").stdout == "ci-engine: would be removed, all its containers have ended\n"
    again = cli("up", topology, "--name", "ci-engine")
    assert again.returncode == 0, again.stderr
    assert f"removing what is left of ci-engine: {ended}" in again.stderr
    assert cli("status", "ci-engine").returncode == 0
    assert cli("down", "ci-engine").returncode == 0
    wait_for(lambda: everything() - before, lambda left: not left, 20, 0.1, "nothing to be left")
    assert attached_devices("ci-engine") == {}


@pytest.mark.nightly
@pytest.mark.spark
def test_an_engine_restarted_during_a_run(clean, restart):
    before = everything()
    command = [sys.executable, "-m", "testbed.cli.main", "run", "kip73-two-node", "--profile", "smoke", "--set"]
    run = subprocess.Popen([*command, "preload=26s"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    lines = []
    for line in run.stderr:
        lines.append(line)
        if "moving" in line:
            break
    begun = time.monotonic()
    restart(signal.SIGTERM)
    _out, said = run.communicate(timeout=180)
    print(f"the run ended {time.monotonic() - begun:.1f} s after the restart began: {said}")
    assert run.returncode == 70, said
    assert "the container engine was stopped or restarted" in said
    assert cli("gc").stdout == "nothing to collect\n"
    assert cli("reassign", "recover").stdout == "nothing to recover\n"
    wait_for(lambda: everything() - before, lambda left: not left, 20, 0.1, "nothing to be left")
