import json
import re
import subprocess
import time

import pytest

from testbed.provision.containers import Engine
from testbed.provision.testbed import Testbed
from testbed.topology.find import find
from tests.containers.conftest import cli, left_of

pytestmark = pytest.mark.containers


def test_three_brokers_are_unfenced_and_shaped_as_declared(three):
    told = cli("status", three.name, "--json")
    assert told.returncode == 0, told.stderr
    status = json.loads(told.stdout)
    assert [host["unfenced"] for host in status["hosts"]] == [True, True, True]
    assert status["shaping"] == []


def test_up_of_what_is_up_changes_nothing(three, engine):
    before = {(found.id, engine.pid(found.id)) for found in engine.containers(three.name)}
    again = Testbed.up(find("three-brokers"), name=three.name)
    again.close()
    assert {(found.id, engine.pid(found.id)) for found in engine.containers(three.name)} == before


def test_another_topology_under_the_same_name_is_refused(three):
    told = cli("up", "two-brokers", "--name", three.name)
    assert told.returncode == 70
    assert "up with another topology" in told.stderr


def test_shaping_changed_behind_the_testbeds_back_is_noticed(three):
    _fabric, pids = three.pids()
    change = ["tc", "class", "change", "dev", "data0", "classid", "1:10", "htb"]
    enter = ["nsenter", f"--net=/proc/{pids['b2']}/ns/net", "--"]
    subprocess.run([*enter, *change, "rate", "100mbit", "ceil", "100mbit"], check=True)
    try:
        assert any("b2 data0 transmit" in difference for difference in three.shaping_differences())
    finally:
        burst = str(three.topology.host("b2").nic.tx_burst_bytes)
        restore = ["rate", "400mbit", "ceil", "400mbit", "burst", burst, "cburst", burst, "quantum", "1514"]
        subprocess.run([*enter, *change, *restore], check=True)
    assert three.shaping_differences() == []


def test_commands_run_on_hosts_and_their_status_is_ours(three):
    told = cli("exec", three.name, "b2", "--", "echo $(hostname) on $SHELL; exit 3")
    assert (told.returncode, told.stdout.split()[0]) == (3, "b2")
    assert cli("exec", three.name, "b9", "--", "true").returncode == 64


def test_logs_are_the_brokers(three):
    assert "Kafka Server started" in cli("logs", "-n", "100000", three.name, "b1").stdout


def test_nothing_listens_beyond_the_testbeds_networks(three):
    for name, host in three.hosts.items():
        allowed = (str(three.plan.management_ip(name)), str(three.plan.data_ip(name)))
        sockets = host.run("cat /proc/net/tcp /proc/net/tcp6").stdout.splitlines()
        listening = [_address(line.split()[1]) for line in sockets if len(line.split()) > 3 and line.split()[3] == "0A"]
        assert listening
        # 127.0.0.11 is the engine's resolver; all of 127/8 is this host's own loopback.
        assert all(address in allowed or address.startswith("127.") for address in listening), (name, listening)


def _address(text: str) -> str:
    """/proc/net/tcp's hexadecimal address; an IPv4 one in IPv6 clothing is that IPv4 one."""
    raw = bytes.fromhex(text.split(":", maxsplit=1)[0])
    quads = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
    assert len(quads) == 4 or quads[:12] == bytes(10) + b"\xff\xff", quads
    return ".".join(str(byte) for byte in quads[-4:])


def test_only_the_testbeds_key_opens_a_host(three):
    config = three.hosts["b1"].run(["/usr/sbin/sshd", "-T", "-f", "/etc/testbed/ssh/sshd_config"]).stdout
    assert "passwordauthentication no" in config
    assert "kbdinteractiveauthentication no" in config
    assert re.search(r"^listenaddress 198\.18\.\d+\.11:22$", config, re.M)


def test_features_are_those_that_kafka_storage_format_gives(three):
    """A cluster formatted by the release's own tool, on one host of its own, has the same finalized features."""
    shell = three.hosts["b3"]
    java = " ".join(three.node("b3")._command[:-2])
    base = "/tmp/formatted"
    properties = (
        "process.roles=broker,controller\\nnode.id=9\\ncontroller.quorum.voters=9@127.0.0.1:19093\\n"
        "listeners=PLAINTEXT://198.19.X:19092,CONTROLLER://127.0.0.1:19093\\ncontroller.listener.names=CONTROLLER\\n"
        f"log.dirs={base}/log\\n"
    ).replace("198.19.X", str(three.plan.data_ip("b3")))
    java = java.replace("port=8778", "port=18778")
    shell.run(f"rm -rf {base}; mkdir -p {base}; printf '{properties}' > {base}/p")
    shell.run(f"{java} kafka.tools.StorageTool format -t aaaaaaaaaaaaaaaaaaaaaA -c {base}/p", timeout_s=60)
    shell.run(f"(setsid {java} kafka.Kafka {base}/p > {base}/out 2>&1 < /dev/null & echo $! > {base}/pid)")
    try:
        from testbed.kafka.admin import Admin
        from testbed.wait import wait_for

        def features():
            from testbed.errors import TestbedError

            try:
                with Admin(f"{three.plan.data_ip('b3')}:19092", timeout_s=3) as admin:
                    return admin.features() if admin.cluster().brokers else {}
            except TestbedError:
                return {}

        formatted = wait_for(features, bool, 60, 0.5, "the formatted cluster")
    finally:
        shell.run(f"kill -9 $(cat {base}/pid); rm -rf {base}", check=False)
    with three.admin() as admin:
        assert admin.features() == formatted
    assert "metadata.version" in formatted


def test_two_testbeds_stand_side_by_side_and_down_leaves_nothing(three):
    begun = time.monotonic()
    second = Testbed.up(find("two-brokers"), name="ci-beside")
    print(f"up of two brokers beside three: {time.monotonic() - begun:.1f} s")
    try:
        assert second.plan.slot != three.plan.slot
        with second.admin() as admin:
            assert len(admin.cluster().brokers) == 2
    finally:
        begun = time.monotonic()
        second.down()
    print(f"down: {time.monotonic() - begun:.1f} s")
    assert left_of("ci-beside") == []
    with three.admin() as admin:
        assert len(admin.cluster().brokers) == 3


def test_down_needs_nothing_but_the_name_and_can_be_repeated():
    told = cli("down", "never-was")
    assert (told.returncode, told.stdout) == (0, "never-was: there was nothing to remove\n")


def test_a_broker_that_cannot_start_leaves_nothing_and_shows_its_log():
    topology = find("two-brokers")
    with pytest.raises(Exception, match="does not run; the end of its log") as caught:
        Testbed.up(topology, name="ci-bad", overlay={"num.network.threads": "-1"})
    assert "num.network.threads" in str(caught.value)
    assert left_of("ci-bad") == []


def test_an_engine_error_leaves_nothing(monkeypatch):
    created = []
    original = Engine.create

    def fail_at_the_second_host(self, spec):
        if spec.ip:
            created.append(spec)
            if len(created) == 2:
                from testbed.errors import TestbedError

                raise TestbedError("the engine is out of disk")
        return original(self, spec)

    monkeypatch.setattr(Engine, "create", fail_at_the_second_host)
    with pytest.raises(Exception, match="out of disk"):
        Testbed.up(find("two-brokers"), name="ci-full")
    assert left_of("ci-full") == []
