"""The program on a machine that exists, run for real: in a network namespace, and on processes of the test."""

import json
import os
import subprocess
import sys
import time

import pytest

from testbed.network.machine_shaping import ingress_device, shaping_lines
from testbed.network.shape import Shape
from testbed.provision.inventory.survey import PROGRAM, TRIALS
from testbed.wait import wait_for
from tests.network.namespaces import network_namespaces

DEVICE = "d0"
ENTRY = ingress_device(DEVICE)


def step(name, config, *, inside=()):
    words = [*inside, sys.executable, str(PROGRAM), name, json.dumps(config)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


@pytest.fixture
def namespace():
    """A process in a network namespace with a pair of devices; commands enter it."""
    make = f"ip link add {DEVICE} type veth peer name d1 && ip link set {DEVICE} txqueuelen 0 up && ip link set d1 up"
    with network_namespaces("machine") as pids:
        enter = ["nsenter", f"--target={pids['machine']}", "--net", "--"]
        subprocess.run([*enter, "sh", "-c", make], check=True)
        # The kernel notices a carrier some time after the command.
        wait_for(lambda: kernel_state(enter), lambda found: found.count("state UP") == 2, 5.0, 0.05, "both ends up")
        yield enter


def kernel_state(enter):
    """What shaping changes, without the state of links' lifetimes."""
    look = f"tc -j qdisc show; tc class show dev {DEVICE}; ip -d link show; ethtool -k {DEVICE} | head -40"
    return subprocess.run([*enter, "sh", "-c", look], capture_output=True, text=True, check=True).stdout


def config(home, seconds):
    slow, fast = Shape(1_000_000, 16384), Shape(100_000_000, 16384)
    device = {"device": DEVICE, "entry": ENTRY, "tc": shaping_lines(DEVICE, slow, fast, 22), "frames": True}
    return {"home": str(home), "seconds": seconds, "alias": "testbed=x", "devices": [device]}


def test_a_machine_restores_its_nics_by_itself_when_the_driver_is_silent(namespace, tmp_path):
    before = kernel_state(namespace)
    assert "timer" in step("shape", config(tmp_path, 1.0), inside=namespace)
    shaped = kernel_state(namespace)
    assert ENTRY in shaped and "htb" in shaped
    wait_for(lambda: kernel_state(namespace), lambda found: found == before, 10.0, 0.1, "the rollback")
    assert "rollback has restored" in step("confirm", {"home": str(tmp_path)}, inside=namespace)["error"]


def test_confirmed_shaping_stays_until_it_is_removed(namespace, tmp_path):
    home, before = tmp_path / "home", kernel_state(namespace)
    step("begin", {"home": str(home), "mark": "m1", "testbed": "x", "folders": []})
    step("shape", config(home, 0.5), inside=namespace)
    assert step("confirm", {"home": str(home)}, inside=namespace) == {}
    time.sleep(1.0)  # longer than the rollback would have waited
    assert "htb" in kernel_state(namespace)
    removal = {"home": str(home), "mark": "m1", "software": str(tmp_path / "none"), "keep": False}
    assert str(home) in step("remove", removal, inside=namespace)["removed"]
    assert kernel_state(namespace) == before and not home.exists()
    assert step("remove", removal, inside=namespace) == {"removed": []}


def test_shaping_that_fails_in_the_middle_is_undone_at_once(namespace, tmp_path):
    before, wanted = kernel_state(namespace), config(tmp_path, 30.0)
    wanted["devices"][0]["tc"] = [*wanted["devices"][0]["tc"][:6], "qdisc nonsense"]
    assert "tc -batch" in step("shape", wanted, inside=namespace)["error"]
    assert kernel_state(namespace) == before


def test_what_somebody_shaped_is_refused_and_stays(namespace, tmp_path):
    tbf = f"tc qdisc add dev {DEVICE} root handle 7: tbf rate 5mbit burst 16k latency 50ms"
    subprocess.run([*namespace, "sh", "-c", tbf], check=True)
    before = kernel_state(namespace)
    assert "tbf 7:" in step("shape", config(tmp_path, 30.0), inside=namespace)["error"]
    assert kernel_state(namespace) == before


def test_only_marked_processes_are_ended(tmp_path):
    marked = subprocess.Popen(["sh", "-c", "sleep 60 & wait"], env={**os.environ, "TESTBED_ID": "abc"})
    other = subprocess.Popen(["sleep", "60"], env={**os.environ, "TESTBED_ID": "abcd"})
    try:
        told = step(
            "remove", {"home": str(tmp_path / "x"), "mark": "abc", "software": str(tmp_path / "y"), "keep": False}
        )
        assert told["removed"] == ["2 processes"]
        assert marked.wait(5) == -9
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_folder_with_another_mark_is_not_removed(tmp_path):
    home = tmp_path / "home"
    step("begin", {"home": str(home), "mark": "theirs", "testbed": "x", "folders": [str(home / "a/b")]})
    told = step("remove", {"home": str(home), "mark": "mine", "software": str(tmp_path / "y"), "keep": False})
    assert "not this testbed's" in told["error"]
    assert (home / "a/b").is_dir()


@pytest.mark.parametrize("keep", [False, True])
def test_software_goes_with_its_last_user(tmp_path, keep):
    parent = tmp_path / "software"
    for name in ("abc", "abc.users"):
        (parent / name).mkdir(parents=True)
    for user in ("one", "two"):
        (parent / "abc.users" / user).touch()
    for mark, left in (("one", True), ("two", keep)):
        step("remove", {"home": str(tmp_path / "x"), "mark": mark, "software": str(parent), "keep": keep})
        assert (parent / "abc").exists() is left
    assert parent.exists() is keep


def test_a_survey_changes_nothing_and_names_what_is_there(tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        told = step(
            "survey",
            {
                "programs": ["ip", "no-such-program"],
                "java": None,
                "trials": TRIALS,
                "folder": str(tmp_path),
                "ports": [port],
                "devices": ["lo", "none0"],
            },
        )
    assert told["programs"]["ip"] and not told["programs"]["no-such-program"]
    assert told["kernel"] == dict.fromkeys(TRIALS, "")
    assert f"(process {os.getpid()})" in told["ports"][str(port)]
    assert told["devices"]["none0"] is None and "127.0.0.1" in told["devices"]["lo"]["addresses"]
    assert told["disk"]["exists"] and told["disk"]["free"] > 0
    assert list(tmp_path.iterdir()) == []
