"""Several machines: engines of their own, each in its network namespace, reached over SSH.

The ordinary run tries what is refused; the rest is nightly, because an engine needs a quarter of a minute to be made.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from testbed.hosts.clock import measure_offset
from testbed.network.measure import HIGHEST, LOWEST, settled
from testbed.network.shape import payload_bytes_per_s
from testbed.provision.containers import name_of_fabric, name_of_host
from testbed.provision.testbed import Testbed
from testbed.topology.find import find
from tests.containers.conftest import ROOT, carried, cli, left_of, measured
from tests.containers.engines import machines, run

NAME = f"ci-machines-{os.environ.get('PYTEST_XDIST_WORKER', 'gw0')}"
MBIT = 1_000_000


def write(folder, made, *, rate="200mbit", more=""):
    """Write a topology of two brokers on two machines; returns its path."""
    first, second = made
    path = folder / "two.yaml"
    path.write_text(
        f"name: two-machines\nmachines:\n  {first.name}: {first.yaml()}\n  {second.name}: {second.yaml()}\n{more}"
        f"kafka: {{version: 4.3.1}}\ndefaults: {{nic: {{rate: {rate}}}}}\n"
        "hosts:\n  b1: {role: both}\n  b2: {role: broker}\n",
        encoding="utf-8",
    )
    return path


def nothing_is_left(made):
    assert left_of(NAME) == []
    for machine in made:
        assert machine.left(NAME) == [], machine.name


def test_a_machine_that_does_not_answer_is_named_and_nothing_is_made(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(
        "name: two-machines\nmachines: {here: {engine: local}, gone: {engine: 'ssh://root@198.18.255.254:2222'}}\n"
        "kafka: {version: 4.3.1}\ndefaults: {nic: {rate: 200mbit}}\nhosts: {b1: {role: both}, b2: {role: broker}}\n",
        encoding="utf-8",
    )
    done = cli("up", str(path), "--name", NAME)
    assert done.returncode != 0
    assert "machine gone (ssh://root@198.18.255.254:2222): no SSH server answers" in done.stderr
    assert left_of(NAME) == []


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with machines(tmp_path_factory.mktemp("engines"), "m1", "m2", network=NAME) as found:
        yield found


@pytest.fixture
def up(made, tmp_path):
    testbed = Testbed.up(find(str(write(tmp_path, made))), name=NAME)
    yield testbed
    testbed.down()
    nothing_is_left(made)


@pytest.mark.nightly
@pytest.mark.alone
def test_two_brokers_on_two_machines(up, made):
    first, second = made
    assert up.state.machine_addresses[first.name] == first.address
    with up.admin() as admin:
        assert len(admin.cluster().brokers) == 2
    for machine, host in ((first, "b1"), (second, "b2")):
        names = machine.run("docker", "ps", "--format", "{{.Names}}").split()
        assert sorted(names) == [name_of_host(NAME, host), name_of_fabric(NAME)]
    status = cli("status", NAME)
    assert status.returncode == 0, status.stdout
    # The packet of full size passes whole, a larger one does not leave the host.
    mtu, peer = up.state.mtu, str(up.plan.data_ip("b2"))
    assert mtu == 1450
    ping = ["ping", "-M", "do", "-c", "1", "-W", "2", "-I", "data0", "-s"]
    assert up.hosts["b1"].run([*ping, str(mtu - 28), peer], check=False).exit_status == 0
    assert up.hosts["b1"].run([*ping, str(mtu - 27), peer], check=False).exit_status != 0
    rates = settled(up.nics)
    off = {rate.end: rate.ratio for rate in rates if not rate.as_declared}
    print({rate.end: round(rate.ratio, 3) for rate in rates})
    assert off == {}
    for source, target in (("b1", "b2"), ("b2", "b1")):
        ratio = carried(up, source, target) / payload_bytes_per_s(200 * MBIT, mtu)
        print(f"{source} to {target}: {ratio:.4f} of the declared payload rate")
        assert LOWEST <= ratio <= HIGHEST
    for shell in up.machine_shells.values():
        offset = measure_offset(shell)
        print(f"{shell.name}: {offset.offset_s * 1000:+.2f} ± {offset.unsure_s * 1000:.2f} ms")
        # Both have the clock of this machine.
        assert abs(offset.offset_s) <= offset.unsure_s + 0.001


@pytest.mark.nightly
@pytest.mark.alone
def test_a_throttled_run_is_judged_across_machines(up):
    done = cli("run", "kip73-two-node", "--profile", "smoke", "--on", up.name, "--json", timeout_s=480)
    told = json.loads(done.stdout)
    for criterion in told["criteria"]:
        print(criterion["name"], criterion["host"], criterion["verdict"], criterion.get("why", ""))
    measured(told["criteria"])
    assert told["verdict"] == "pass", done.stdout
    assert {each["verdict"] for each in told["criteria"] if each["name"] == "clocks-agree"} == {"pass"}


@pytest.mark.nightly
def test_a_path_narrower_than_declared_is_refused_with_the_nics_and_nothing_is_left(made, tmp_path):
    first, second = made
    end = "tc qdisc add dev eth0 root handle 1: htb default 10 && tc class add dev eth0 parent 1: classid 1:10 htb "
    first.run("sh", "-c", end + "rate 100mbit ceil 100mbit burst 16k quantum 1600")
    try:
        done = cli("up", str(write(tmp_path, made)), "--name", NAME)
    finally:
        first.run("tc", "qdisc", "del", "dev", "eth0", "root")
    assert done.returncode != 0
    assert "narrower than what is declared on it" in done.stderr
    assert "m1 → m2 carries" in done.stderr
    assert "its NICs need 200mbit (b1 data0)" in done.stderr
    assert "m2 → m1" not in done.stderr
    nothing_is_left(made)
    del second


@pytest.mark.nightly
def test_an_mtu_that_the_network_between_the_machines_lacks_is_refused(made, tmp_path):
    done = cli("up", str(write(tmp_path, made, more="mtu: 1500\n")), "--name", NAME)
    assert done.returncode != 0
    assert "must have an MTU of 1550" in done.stderr
    nothing_is_left(made)


@pytest.mark.nightly
def test_a_driver_that_is_killed_at_any_point_leaves_nothing_that_gc_does_not_find(made, tmp_path):
    path, seed = write(tmp_path, made), random.randrange(10**6)
    print(f"seed {seed}")
    points = random.Random(seed)
    for _ in range(6):
        words = [sys.executable, "-m", "testbed.cli.main", "up", str(path), "--name", NAME]
        with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(points.uniform(0.5, 12.0))
            process.send_signal(signal.SIGKILL)
        known = cli("ls").stdout
        done = cli("gc") if points.random() < 0.5 and f"{NAME} up" not in known else cli("down", NAME)
        assert done.returncode == 0, done.stderr
        cli("down", NAME)
        nothing_is_left(made)


@pytest.mark.nightly
def test_a_machine_that_is_lost_is_named_and_down_removes_the_rest_then_all(made, tmp_path):
    first, second = made
    Testbed.up(find(str(write(tmp_path, made))), name=NAME).close()
    run("docker", "pause", second.container)
    try:
        status = cli("status", NAME)
        assert status.returncode != 0
        assert "machine m2" in status.stdout + status.stderr
        done = cli("down", NAME)
        assert done.returncode != 0
        assert "on machine m2" in done.stderr
        assert first.left(NAME) == []
    finally:
        run("docker", "unpause", second.container)
    assert cli("down", NAME).returncode == 0
    nothing_is_left(made)
