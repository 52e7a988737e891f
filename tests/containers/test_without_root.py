"""A testbed for a user without root's permissions: a container of the engine does what needs them.

The commands here run without the capabilities that change and enter network namespaces, as any user's would.
"""

import signal
import subprocess
import sys
from contextlib import closing

import docker
import pytest

from testbed.network.apply import read_shape
from testbed.network.root_container import RootContainer
from testbed.network.shaping_watch import TrafficControlWatch
from testbed.provision.containers import ROLE, Engine
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.wait import wait_for
from tests.containers.conftest import ROOT, left_of

pytestmark = pytest.mark.containers
NAME = "ci-without-root"
LACKING = "-net_admin,-sys_admin,-sys_ptrace"
WITHOUT_ROOT = ("setpriv", f"--bounding-set={LACKING}", f"--inh-caps={LACKING}", "--")
TOPOLOGY = """
name: without-root
kafka: {version: 4.3.1}
defaults: {nic: {rate: 100mbit}}
hosts:
  b1: {role: both, disk: {size: 500MB}}
"""


def without_root(*words):
    command = [*WITHOUT_ROOT, sys.executable, "-m", "testbed.cli.main", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def root_containers():
    client = docker.APIClient(version="auto")
    try:
        return {str(each["Id"]) for each in client.containers(all=True, filters={"label": f"{ROLE}=root"})}
    finally:
        client.close()


def wait_gone(before):
    wait_for(lambda: root_containers() - before, lambda left: not left, 10, 0.1, "root containers to be gone")


@pytest.fixture(scope="module")
def up(own_state, tmp_path_factory):
    file = tmp_path_factory.mktemp("topology") / "without-root.yaml"
    file.write_text(TOPOLOGY)
    without_root("up", str(file), "--name", NAME)
    yield NAME
    engine = Engine()
    remove(engine, NAME)
    engine.close()


def test_it_is_up_shaped_faulted_healed_and_removed(up):
    with Testbed.attach(up) as testbed:
        _fabric, pids = testbed.pids()
        assert testbed.shaping_differences() == []
        without_root("fault", "add", up, "nic-rate", "host=b1", "rate=40mbit")
        assert read_shape("data0", pids["b1"]).rate_bps == 40_000_000
        without_root("fault", "clear", up)
        assert testbed.shaping_differences() == []
        assert "unfenced" in without_root("status", up)


def test_a_change_of_shaping_is_seen_through_the_container(up, monkeypatch):
    from testbed.network import namespaces

    with Testbed.attach(up) as testbed:
        _fabric, pids = testbed.pids()
        container = RootContainer.start()
        monkeypatch.setattr(namespaces, "lacking_capabilities", lambda: ("CAP_NET_ADMIN",))
        monkeypatch.setattr(namespaces, "root_container", lambda: container)
        with closing(TrafficControlWatch({"b1": pids["b1"]})) as watch:
            assert watch.changes() == set()
            enter = ["nsenter", f"--net=/proc/{pids['b1']}/ns/net", "tc"]
            subprocess.run([*enter, "qdisc", "add", "dev", "data0", "clsact"], check=True)
            subprocess.run([*enter, "qdisc", "del", "dev", "data0", "clsact"], check=True)
            [change] = watch.changes()
            assert (change.place, change.device, change.what) == ("b1", "data0", "shaping")
        assert container.run(["sh", "-c", "cat; exit 3"], stdin=b"x", timeout_s=5).returncode == 3
        with pytest.raises(FileNotFoundError):
            container.run(["no-such-program"], timeout_s=5)
        with pytest.raises(subprocess.TimeoutExpired):
            container.run(["sleep", "60"], timeout_s=0.2)
        container.close()


def test_a_killed_command_leaves_no_root_container(own_state):
    before = root_containers()
    program = (
        "import time\nfrom testbed.network.root_container import root_container\n"
        "root_container()\nprint('started', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "started\n"
        assert len(root_containers() - before) == 1
        process.send_signal(signal.SIGKILL)
    wait_gone(before)


def test_down_leaves_nothing(up):
    before = root_containers()
    without_root("down", up)
    assert left_of(up) == []
    wait_gone(before)
