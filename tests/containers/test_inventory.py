"""Machines that exist: containers with SSH that the testbed did not make, used and left as they were."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.containers.conftest import ROOT, cli, measured
from tests.containers.ssh_machines import docker, image_with_sudo, machine_set

NAME = "ci-inventory"
RATE = "200mbit"


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """A jump host; a machine with a login of root; one behind the jump host, on another port, with a user and sudo."""
    folder, tag = tmp_path_factory.mktemp("machines"), f"{NAME}-{os.getpid()}"
    image = image_with_sudo(folder, tag)
    found = machine_set(folder / "keys", tag)
    try:
        hop = found.add(image, "hop", users="ops")
        found.add(image, "m1")
        found.add(image, "m2", port=2222, users=f"ops@{hop.address}")
        yield found
    finally:
        found.remove()
        docker("rmi", "-f", tag)


def topology(machines, folder, *, known_hosts=None, **more):
    """The file of a topology on m1 and m2."""
    m1, m2, hop = machines["m1"], machines["m2"], machines["hop"]
    document = {
        "name": "lab",
        "provision": "inventory",
        "inventory": {"key": str(machines.key), "known_hosts": str(known_hosts or machines.known_hosts()), **more},
        "kafka": {"version": "4.3.1"},
        "defaults": {"nic": {"device": "eth0", "rate": RATE}},
        "hosts": {
            "b1": {"role": "both", "ssh": {"address": m1.address, "folder": "/var/lib/kafka"}},
            "b2": {
                "role": "broker",
                "nic": {"address": m2.address},
                "ssh": {"user": "ops", "port": 2222, "jump": f"ops@{hop.address}", "host_key": m2.fingerprint},
            },
        },
    }
    path = folder / "lab.yaml"
    path.write_text(json.dumps(document))
    return str(path)


def snapshots(machines):
    return {name: machine.snapshot() for name, machine in machines.machines.items()}


def differences(before, after):
    """What is there now and was not before, and the other way round, in words."""
    found = []
    for name, old in before.items():
        for what, was in old.items():
            now = after[name][what]
            if now != was and isinstance(was, list):
                found.append((name, what, [x for x in now if x not in was], [x for x in was if x not in now]))
            elif now != was:
                found.append((name, what, now, was))
    return found


def test_machines_are_used_and_left_as_they_were(machines, tmp_path):
    file = topology(machines, tmp_path)
    before = snapshots(machines)
    try:
        up = cli("up", file, "--name", NAME)
        assert up.returncode == 0, up.stderr
        assert "HOST  SSH" in up.stderr and "shaped and read back" in up.stderr
        status = json.loads(cli("status", NAME, "--json").stdout)
        assert status["ok"], status
        # The testbed's own paths are in its folder; what somebody else has at these paths is not seen.
        seen = cli("exec", NAME, "b1", "--", "ls /var/lib/kafka; id -u; tc class show dev eth0")
        assert "__cluster_metadata-0" in seen.stdout and "\n0\n" in seen.stdout, seen
        assert "rate 200Mbit" in seen.stdout and "class htb 1:20" in seen.stdout
        assert "started" in cli("logs", NAME, "b2").stdout.lower()
        assert cli("fault", "add", NAME, "nic-rate", "host=b2", "rate=50mbit").returncode == 0
        assert "rate 50Mbit" in cli("exec", NAME, "b2", "--", "tc class show dev eth0").stdout
        refused = cli("fault", "add", NAME, "nic-down", "host=b2")
        assert refused.returncode != 0 and "there is none" in refused.stderr
        assert cli("fault", "clear", NAME).returncode == 0
    finally:
        down = cli("down", NAME)
    assert down.returncode == 0, down.stderr
    assert "processes on b1" in down.stdout
    assert differences(before, snapshots(machines)) == []


def test_a_preflight_names_what_every_machine_lacks_before_anything_is_changed(machines, tmp_path):
    before = snapshots(machines)
    # An unknown key, with its fingerprint.
    file = topology(machines, tmp_path, known_hosts=tmp_path / "none")
    refused = cli("up", file, "--name", NAME)
    assert refused.returncode != 0
    assert f"unknown key, {machines['m1'].fingerprint}" in refused.stderr, refused.stderr
    # Java, a port, and a NIC that somebody shaped, all in one table.
    m1, m2 = machines["m1"], machines["m2"]
    m1.sh("mv /usr/lib/jvm /usr/lib/jvm.away")
    # The kernel makes the queue of a device longer when it gets a qdisc, and leaves it so.
    queue = m2.sh("cat /sys/class/net/eth0/tx_queue_len").strip()
    m2.sh("tc qdisc add dev eth0 root handle 7: tbf rate 900mbit burst 64k latency 50ms")
    docker("exec", "-d", m2.container, "python3", "-m", "http.server", "9092")
    try:
        machines["m2"].sh("until ss -ltn | grep -q :9092; do sleep 0.1; done")
        refused = cli("up", topology(machines, tmp_path), "--name", NAME)
        assert "tbf 7: root" in m2.sh("tc qdisc show dev eth0")
    finally:
        m1.sh("mv /usr/lib/jvm.away /usr/lib/jvm")
        m2.sh(f"tc qdisc del dev eth0 root; ip link set dev eth0 txqueuelen {queue}; kill $(pgrep -f '[h]ttp.server')")
    assert refused.returncode != 0
    for text in ("b1 lacks Java 17", "b2 lacks the port 9092, which python3", "qdisc tbf 7: root, which would be lost"):
        assert text in refused.stderr, refused.stderr
    assert "nothing was changed" in refused.stderr
    assert cli("ls").stdout.count(NAME) == 0
    assert differences(before, snapshots(machines)) == []


def killed(file, when, timeout_s=120):
    """Begin `up`, and kill it with SIGKILL once `when` holds, or returns whether it was over before."""
    driver = subprocess.Popen(
        [sys.executable, "-m", "testbed.cli.main", "up", file, "--name", NAME],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + timeout_s
    while driver.poll() is None and not when() and time.monotonic() < deadline:
        time.sleep(0.02)
    over = driver.poll() is not None
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    return not over


def there(machine, command):
    """Whether a command succeeds on a machine."""
    done = subprocess.run(["docker", "exec", machine.container, "sh", "-c", command], capture_output=True, check=False)
    return done.returncode == 0


POINTS = {
    "its folder is made": "test -d /var/tmp/testbed-ci-inventory-*",
    "software is being copied": "test -d /var/tmp/testbed-software/*.partial",
    "the NIC is being shaped": "ls /var/tmp/testbed-ci-inventory-*/shaping.pending",
    "the NIC is shaped": "ls /var/tmp/testbed-ci-inventory-*/shaping.confirmed",
    "Kafka runs": "pgrep java",
}


@pytest.mark.nightly
@pytest.mark.parametrize("point", POINTS)
def test_down_takes_back_what_a_killed_driver_left(machines, tmp_path, point):
    file, before = topology(machines, tmp_path), snapshots(machines)
    assert killed(file, lambda: there(machines["m2"], POINTS[point])), "up was over before it could be killed"
    collected = cli("gc") if point == "Kafka runs" else cli("down", NAME)
    assert collected.returncode == 0, collected.stderr
    assert differences(before, snapshots(machines)) == []
    assert NAME not in cli("ls").stdout


@pytest.mark.nightly
def test_a_machine_restores_its_only_nic_when_the_driver_is_cut(machines, tmp_path):
    file, before = topology(machines, tmp_path), snapshots(machines)
    m2 = machines["m2"]
    assert killed(file, lambda: there(m2, POINTS["the NIC is being shaped"]))
    try:
        deadline = time.monotonic() + 45
        while m2.snapshot()["qdiscs"] != before["m2"]["qdiscs"] and time.monotonic() < deadline:
            time.sleep(0.5)
        assert m2.snapshot()["qdiscs"] == before["m2"]["qdiscs"]
        assert m2.snapshot()["links"] == before["m2"]["links"]
    finally:
        down = cli("down", NAME)
    assert down.returncode == 0, down.stderr
    assert differences(before, snapshots(machines)) == []


@pytest.mark.nightly
def test_software_is_copied_once_where_it_is_kept(machines, tmp_path):
    file = topology(machines, tmp_path, keep_software=True)
    try:
        first = cli("up", file, "--name", NAME)
        assert first.returncode == 0 and "copied to 2 hosts" in first.stderr, first.stderr
        assert cli("down", NAME).returncode == 0
        second = cli("up", file, "--name", NAME)
        assert second.returncode == 0 and "0 MB copied to 0 hosts" in second.stderr, second.stderr
    finally:
        cli("down", NAME)
        for name in ("m1", "m2"):
            machines[name].sh("rm -rf /var/tmp/testbed-software /var/lib/kafka/testbed-software")


@pytest.mark.nightly
@pytest.mark.alone
def test_a_throttled_run_is_judged_on_machines_that_exist(machines, tmp_path):
    file, before = topology(machines, tmp_path), snapshots(machines)
    try:
        up = cli("up", file, "--name", NAME)
        assert up.returncode == 0, up.stderr
        done = cli("run", "kip73-two-node", "--profile", "smoke", "--on", NAME, "--json", timeout_s=480)
        told = json.loads(done.stdout)
        for criterion in told["criteria"]:
            print(criterion["name"], criterion["host"], criterion["verdict"], criterion.get("why", ""))
        measured(told["criteria"])
        assert told["verdict"] == "pass", done.stdout
    finally:
        down = cli("down", NAME)
    assert down.returncode == 0, down.stderr
    assert differences(before, snapshots(machines)) == []
