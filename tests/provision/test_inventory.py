"""Machines that exist, without any: topologies, keys, paths, shaping and the preflight, as functions of values."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.defects import agent
from testbed.errors import TestbedError, UsageError
from testbed.faults.catalogue import client_stampede as stampede
from testbed.faults.network import require_on_machines
from testbed.faults.parse import parse_fault
from testbed.faults.processes import pulses
from testbed.hosts import Daemon
from testbed.hosts.clock import ClockOffset
from testbed.hosts.host_keys import fingerprint, refusal_text
from testbed.hosts.relocation import PathRelocation
from testbed.kafka import node
from testbed.kafka.node import Node
from testbed.network.apply import link_ends
from testbed.network.fabric import shaped_devices
from testbed.network.machine_shaping import foreign_shaping, ingress_device, shaping_lines, without_own
from testbed.network.shape import Shape
from testbed.network.shaping_watch import DeviceChange, change_of_line
from testbed.network.transfers import FABRIC, transfers
from testbed.objectstore import server
from testbed.provision.inventory import access as accesses
from testbed.provision.inventory import survey as surveys
from testbed.provision.inventory.access import JumpKeys, VerifiedKeys, jump_of, ssh_address, verified_keys
from testbed.provision.inventory.preflight import CHECKS, preflight, require_ready
from testbed.provision.inventory.survey import MachineFacts, ports_of
from testbed.provision.plan_text import describe
from testbed.topology import TopologyError, load_document, loads
from testbed.topology.inventory import InventoryForm, SshForm

PID_FILES = (node.PID_FILE, server.PID_FILE)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAOuC04PN2BspjK7hmDNRWMkraFx2Jyr2J8UfW8+rRbX"
LAB = """
name: lab
provision: inventory
inventory: {user: ops, key: id, jump: "root@198.18.5.5:2222"}
kafka: {version: 4.3.1}
defaults: {nic: {device: eth0, rate: 100mbit}}
hosts:
  b1: {role: both, ssh: {address: 198.18.5.2, user: root, folder: /srv/kafka/}}
  b2: {role: broker, nic: {address: 198.18.5.3, rate: 400mbit}, ssh: {port: 2022}}
"""
TOPOLOGY = loads(LAB)


def _paths_of_daemons():
    """Return the files of every server and program of faults that a machine that exists can have."""
    host = SimpleNamespace(name="b1")
    on = SimpleNamespace(hosts={"b1": host})
    servers = [Node(host, ["java"]), stampede.clients(on, "b1")]
    servers += [
        pulses(Daemon(host, "s", [], pid_file=file, log="/var/log/minio/s.log"), file, None) for file in PID_FILES
    ]
    return sorted({path for each in servers for path in (each._pid_file, each.log)} | {*PID_FILES, agent.NOTES})


def test_a_host_inherits_how_it_is_reached():
    b1, b2 = (host.ssh for host in TOPOLOGY.hosts)
    assert (b1.user, b1.sudo, b1.folder, b1.port) == ("root", False, "/srv/kafka", 22)
    assert (b2.address, b2.user, b2.sudo, b2.port) == ("198.18.5.3", "ops", True, 2022)
    jump = jump_of(b2)
    assert (jump.user, jump.host, jump.port) == ("root", "198.18.5.5", 2222) and b2.key.startswith("/")
    address = ssh_address(b2, VerifiedKeys("host key", "jump key"))
    assert address.jump.host_key == "jump key" and address.jump.port == 2222 and address.jump.private_key == b2.key


def test_the_document_of_a_topology_is_the_same_topology():
    again = load_document(TOPOLOGY.to_document())
    assert again == TOPOLOGY and again.digest() == TOPOLOGY.digest()
    nics = "nics: {data: {device: eth0, rate: 1gbit}, repl: {device: eth1, rate: 1gbit, use: replication}}"
    two = LAB.replace("nic: {device: eth0, rate: 100mbit}", nics)
    two = two.replace("nic: {address: 198.18.5.3, rate: 400mbit}, ", "")
    both = loads(two.replace("port: 2022", "address: h2"))
    assert [nic.name for nic in both.host("b2").nics] == ["eth0", "eth1"]
    assert load_document(both.to_document()) == both


@pytest.mark.parametrize(
    ("there", "instead", "told"),
    [
        ("defaults: {nic: {device: eth0, rate", "defaults: {nic: {rate", "b1.nic.device: nothing says which device"),
        ("ssh: {address: 198.18.5.2, user", "ssh: {user", "hosts.b1.ssh.address: nothing says where this machine is"),
        ("address: 198.18.5.3", "address: 198.18.5.300", "198.18.5.300 is no IPv4 address"),
        ("ssh: {port: 2022}", "ssh: {address: 198.18.5.2}", "198.18.5.2:22 is b1 already"),
        ("role: broker,", "role: broker, disk: {size: 2GB},", "hosts.b2.disk: a file system of a size cannot be made"),
        ("role: broker,", "role: broker, cpus: 1,", "hosts.b2.cpus: processes of a machine that exists"),
        ("provision: inventory\n", "provision: inventory\nracks: {r1: {uplink: {rate: 1gbit}}}\n", "is no switch"),
        ("provision: inventory\n", "", "inventory: the testbed makes the hosts"),
        ("provision: inventory\n", "", "hosts.b1.ssh: the testbed makes this host"),
        ("provision: inventory\n", "", "defaults.nic.device: the testbed makes this NIC"),
        ("provision: inventory", "provision: inventori", "did you mean inventory?"),
        ("port: 2022", "host_key: SHA256:short", "SHA256:short is no host key"),
        ("5.5:2222", "5.5:99999", "inventory.jump: 99999 is no port; allowed: 1 to 65535"),
        ("key: id", "kex: id", "did you mean key?"),
        ("device: eth0", "device: lo", "lo is loopback"),
    ],
)  # fmt: skip
def test_what_cannot_be_held_is_refused_before_any_machine_is_asked(there, instead, told):
    assert there in LAB
    with pytest.raises(TopologyError) as refused:
        loads(LAB.replace(there, instead))
    assert told in str(refused.value)


def test_the_plan_says_what_is_set_and_which_address_is_not_known():
    text = describe(TOPOLOGY)
    assert "ssh: ops@198.18.5.3:2022 by way of root@198.18.5.5:2222, as root by sudo" in text
    assert "controller.quorum.voters=1@<address of b1 eth0>:9094" in text
    assert "action mirred egress redirect" in text and "dport 2022" in text


def test_own_paths_are_under_the_testbeds_folder_and_no_other_path_is():
    home = "/srv/testbed-lab-1"
    moved = PathRelocation(home, "m", sudo=True, java="/j")
    assert moved.text("cat /run/kafka.pid /etc/kafka /var/lib/kafka/t-0 /var/lib/kafka-2 x=/opt/testbed/agent.py") == (
        f"cat {home}/run/kafka.pid /etc/kafka {home}/var/lib/kafka/t-0 /var/lib/kafka-2 x={home}/opt/testbed/agent.py"
    )
    assert moved.text(moved.text("/var/lib/kafka")) == moved.text("/var/lib/kafka")
    assert moved.content(b"\xff/var/lib/kafka") == b"\xff/var/lib/kafka"
    command = moved.command("a 'b'; c")
    assert command.startswith("sudo -n -- env TESTBED_ID=m PATH=/j/bin:") and command.endswith(
        """sh -c 'a '"'"'b'"'"'; c'"""
    )


@pytest.mark.parametrize("path", _paths_of_daemons(), ids=str)
def test_each_file_of_each_process_is_under_the_testbeds_folder(path):
    """`down` removes this folder, and nothing else: a file elsewhere would stay on the machine."""
    moved = PathRelocation("/srv/testbed-lab-1", "m", sudo=False)
    assert moved.text(f"cat {path}") == f"cat /srv/testbed-lab-1{path}"
    assert any(f"{moved.home}{path}".startswith(f"{folder}/") for folder in moved.folders)


def test_the_parent_folder_may_be_a_path_that_the_testbed_uses_itself():
    moved = PathRelocation("/var/lib/kafka/testbed-lab-1", "m", sudo=False)
    text = "ln -s /var/lib/kafka/testbed-software/ab /opt/kafka; ls /var/lib/kafka/testbed-lab-1/x /var/lib/kafka/t-0"
    home = moved.home
    assert moved.text(text) == (
        f"ln -s /var/lib/kafka/testbed-software/ab {home}/opt/kafka; ls {home}/x {home}/var/lib/kafka/t-0"
    )


def test_a_nic_is_shaped_at_its_own_ends_only():
    places = {(each.what, each.host, each.device) for each in shaped_devices(TOPOLOGY)}
    assert ("b2 eth0 receive", "b2", ingress_device("eth0")) in places and len(places) == 4
    assert all(end.host in ("b1", "b2") for end in link_ends("lab", TOPOLOGY))
    lines = shaping_lines("eth0", Shape(10**8, 16384), Shape(10**8, 16384), 2022)
    # What the NIC receives is redirected only when the place it is redirected to is ready.
    assert "redirect" in lines[-1]
    assert sum("sport 2022" in line for line in lines) == sum("dport 2022" in line for line in lines) == 1


def test_the_class_of_ssh_is_no_difference_and_its_lack_is_one():
    shape = Shape(10**8, 16384, foreign=("qdisc ingress ffff:", "class htb 1:20", "qdisc tbf 9:"))
    redirected = f"action order 1: mirred (Egress Redirect to device {ingress_device('eth0')}) stolen"
    assert without_own("eth0", shape, redirected).foreign == ("qdisc tbf 9:",)
    assert len(without_own("eth0", replace(shape, foreign=()), redirected).foreign) == 2
    assert "does not redirect" in without_own("eth0", shape, "").foreign[-1]


def test_only_disciplines_that_somebody_set_are_foreign():
    default = [{"kind": "mq", "handle": "0:", "root": True}, {"kind": "fq_codel", "handle": "0:", "parent": ":1"}]
    assert foreign_shaping(default) == []
    assert foreign_shaping([*default, {"kind": "clsact", "handle": "ffff:"}]) == ["qdisc clsact ffff:"]


def test_machines_are_measured_against_each_other():
    found = transfers(TOPOLOGY)
    assert FABRIC not in {end for each in found for end in (each.source, each.target)}
    measured = {end: each.reach_bps for each in found for end in each.measures}
    # b2 is faster than its only partner: that is all that can be shown of it.
    assert measured == {(host, way): 100_000_000 for host in ("b1", "b2") for way in ("transmit", "receive")}


def facts(**more):
    survey = {
        "python": "3.11",
        "programs": dict.fromkeys(("ip", "tc", "setsid", "tar", "ethtool", "iperf3"), "/usr/bin/x"),
        "java": [{"home": "/j17", "major": 17}, {"home": "/j11", "major": 11}],
        "kernel": {"htb": "", "ifb": ""},
        "disk": {"exists": True, "writable": True, "free": 10**11},
        "ports": {},
        "devices": {"eth0": {"up": True, "mtu": 1500, "addresses": ["198.18.5.2", "198.18.5.3"], "qdiscs": []}},
    }
    return MachineFacts(keys=VerifiedKeys(KEY), ssh_port=22, python=True, survey={**survey, **more})


def lacks(**of_b2):
    return preflight(TOPOLOGY, {"b1": facts(), "b2": facts(**of_b2)}).lacks


def test_machines_that_have_everything_lack_nothing():
    report = preflight(TOPOLOGY, {"b1": facts(), "b2": facts()})
    assert report.lacks == [] == report.remarks
    require_ready(TOPOLOGY, report)
    assert report.text().splitlines()[0].split() == ["HOST", *CHECKS]


TBF = {"kind": "tbf", "handle": "7:", "root": True}
DEVICE = {"up": True, "mtu": 1500, "addresses": ["198.18.5.3"], "qdiscs": []}


@pytest.mark.parametrize(
    ("of_b2", "told"),
    [
        ({"java": [{"home": "/j11", "major": 11}]}, "Java 17 or newer (it has 11 in /j11)"),
        ({"programs": {"ip": "/x", "tc": "", "setsid": "/x", "tar": "/x"}}, "iproute2; on Debian"),
        ({"kernel": {"htb": "Error: Specified qdisc kind is unknown"}}, "kinds of traffic control in the kernel (htb"),
        ({"disk": {"exists": False}}, "the folder /var/tmp; make it"),
        ({"disk": {"exists": True, "writable": True, "free": 10**9}}, "2GB of free space in /var/tmp (it has 1.0GB)"),
        ({"ports": {"9092": "java (process 7)"}}, "the port 9092, which java (process 7) uses"),
        ({"devices": {"eth0": None}}, "a network device eth0"),
        ({"devices": {"eth0": {**DEVICE, "addresses": ["10.0.0.1"]}}}, "198.18.5.3 on eth0, which has 10.0.0.1"),
        ({"devices": {"eth0": {**DEVICE, "mtu": 9000}}}, "an MTU of 1280 to 1500 on eth0 (it has 9000)"),
        ({"devices": {"eth0": {**DEVICE, "mtu": 1400}}}, "the MTU of the other hosts, 1500 (it has 1400)"),
        ({"devices": {"eth0": {**DEVICE, "qdiscs": [TBF]}}}, "qdisc tbf 7: root, which would be lost"),
    ],
)  # fmt: skip
def test_each_thing_that_a_machine_lacks_is_named(of_b2, told):
    found = lacks(**of_b2)
    assert len(found) == 1 and found[0].startswith("b2 lacks ") and told in found[0], found


def test_all_machines_and_all_that_they_lack_are_told_at_once():
    b1 = replace(facts(), sudo="sudo: a password is required", clock=ClockOffset(3.0, 0.01))
    b2 = replace(facts(), python=False, survey={}, silent={})
    report = preflight(TOPOLOGY, {"b1": b1, "b2": b2})
    with pytest.raises(TestbedError) as refused:
        require_ready(TOPOLOGY, report)
    for told in ("nothing was changed", "sudo without a password", "+3000 ± 10 ms", "b2 lacks python3"):
        assert told in str(refused.value)
    unreachable = preflight(TOPOLOGY, {"b1": facts(), "b2": MachineFacts(unreachable="no route")})
    assert unreachable.lacks == ["b2 lacks a login over SSH: no route"]


def test_one_machine_under_two_names_is_named():
    """The second host would find the first one's folder there, and its NIC shaped."""
    same = {"eth0": {**DEVICE, "addresses": ["198.18.5.3"]}}
    report = preflight(TOPOLOGY, {"b1": facts(devices=same), "b2": facts()})
    assert report.lacks == ["b2 lacks a data address of its own: 198.18.5.3 is b1's; name each machine once"]


def test_missing_measuring_programs_are_remarks():
    report = preflight(
        TOPOLOGY, {"b1": facts(), "b2": facts(programs=dict.fromkeys(("ip", "tc", "setsid", "tar"), "/x"))}
    )
    assert report.lacks == [] and "no iperf3" in report.remarks[0]


def test_a_data_address_that_does_not_answer_is_named():
    report = preflight(TOPOLOGY, {"b1": replace(facts(), silent={"198.18.5.3": "timed out"}), "b2": facts()})
    assert report.lacks == ["b1 lacks a way to 198.18.5.3 (timed out)"]


def test_ports_follow_from_the_role():
    assert 9094 in ports_of(TOPOLOGY.host("b1")) and 9094 not in ports_of(TOPOLOGY.host("b2"))


class Answering:
    """A machine whose command prints this."""

    name = "b1"

    def __init__(self, printed):
        self.printed, self.asked = printed, []

    def run(self, words):
        self.asked.append(words)
        return SimpleNamespace(stdout=self.printed)


SAID = "testbed-survey\n\n1000\n10.0.0.1 4711 10.0.0.2 2022\n"


@pytest.fixture
def same_clock(monkeypatch):
    monkeypatch.setattr(surveys, "measure_offset", lambda _host: SimpleNamespace(offset_s=0.0, unsure_s=0.001))


def test_a_machine_is_asked_in_the_language_of_sh_whatever_shell_the_user_has(same_clock):
    machine = Answering(SAID)
    found = surveys._asked(machine, TOPOLOGY.host("b1"), MachineFacts())
    assert machine.asked == [["sh", "-c", surveys._FIRST]]
    assert (found.ssh_port, found.python, found.sudo) == (2022, False, "root is not root, and sudo is false")


def test_a_shell_whose_start_up_files_print_is_named(same_clock):
    with pytest.raises(TestbedError, match=r"begins with 'Welcome to lab': a start-up file of root's shell"):
        surveys._asked(Answering("Welcome to lab\n" + SAID), TOPOLOGY.host("b1"), MachineFacts())


@pytest.mark.parametrize("known", [True, False])
def test_a_jump_host_is_asked_for_its_key_once_for_all_machines(monkeypatch, known):
    asked = []

    def verified(host, port, *_rest, **_field):
        asked.append((host, port))
        if not known and host == "198.18.5.5":
            raise TestbedError("an unknown key")
        return KEY

    monkeypatch.setattr(accesses, "verified", verified)
    monkeypatch.setattr(accesses, "SshHost", lambda *_words: SimpleNamespace(tunnel=None, close=lambda: None))
    keys = JumpKeys()
    for name in ("b1", "b2"):
        if known:
            assert verified_keys(name, TOPOLOGY.host(name).ssh, keys) == VerifiedKeys(KEY, KEY)
        else:
            with pytest.raises(TestbedError, match="an unknown key"):
                verified_keys(name, TOPOLOGY.host(name).ssh, keys)
    assert asked.count(("198.18.5.5", 2222)) == 1


def test_users_have_the_names_that_linux_allows():
    for user in ("jane.doe", "Admin", "0day"):
        lab = loads(LAB.replace("user: ops", f'user: "{user}"').replace("root@198", f"{user}@198"))
        assert (lab.host("b2").ssh.user, jump_of(lab.host("b2").ssh).user) == (user, user)
    for user in ("-o", "a b", "a@b", ""):
        with pytest.raises(TopologyError, match="user"):
            loads(LAB.replace("user: ops", f'user: "{user}"'))


def test_a_refused_key_is_shown_with_what_to_do():
    shown = fingerprint(KEY)
    assert shown.startswith("SHA256:") and len(shown) == 50
    unknown = refusal_text("h:22", [KEY], None, [], "~/known", "host_key")
    assert f"unknown key, {shown}" in unknown and f"host_key: {shown}" in unknown
    assert "another key for it" in refusal_text("h:22", [KEY], None, [KEY], "~/known", "host_key")
    assert "declared is host_key: SHA256:other" in refusal_text("h", [KEY], "SHA256:other", ["x"], "f", "host_key")


def test_the_lines_of_the_monitor_are_understood():
    assert change_of_line("b1", "shaping tbi-0123456789\n") == DeviceChange("b1", "tbi-0123456789", "shaping")
    assert change_of_line("b1", "down eth0\n") == DeviceChange("b1", "eth0", "down")
    assert change_of_line("b1", "ready\n") is None


class OnMachines:
    """As much of a testbed as a fault's refusal needs."""

    topology = TOPOLOGY
    plan = None


def test_faults_of_a_switch_are_refused():
    with pytest.raises(UsageError, match="there is none"):
        require_on_machines(parse_fault("nic-down host=b2"), OnMachines())
    require_on_machines(parse_fault("nic-rate host=b2 rate=50mbit"), OnMachines())
    with pytest.raises(UsageError, match="does not limit its CPUs"):
        parse_fault("cpu-limit host=b2 cpus=0.5").check(TOPOLOGY)


def test_state_with_machines_reads_back():
    from results.contract.document import decode
    from testbed.provision.state import MachineState

    state = MachineState(KEY, "", "/srv/x", "/srv/y", "m", "/j", 22, ("198.18.5.3",), "boot")
    document = {name: getattr(state, name) for name in state.__dataclass_fields__}
    assert decode(MachineState, json.loads(json.dumps(document)), "state.json") == state


PAGE = (Path(__file__).parents[2] / "docs" / "inventory.md").read_text(encoding="utf-8")


def test_the_pages_example_is_a_topology_that_can_be_planned():
    example = PAGE.split("```yaml\n")[1].split("```")[0]
    found = loads(example)
    assert [host.ssh.address for host in found.hosts] == ["10.0.0.11", "10.0.0.12", "bastion-3.example"]
    assert "by way of ops@bastion.example" in describe(found)


def test_the_page_names_every_field_and_every_check():
    for field in (*InventoryForm.model_fields, *SshForm.model_fields, "device", *CHECKS):
        assert f"`{field}`" in PAGE, field
