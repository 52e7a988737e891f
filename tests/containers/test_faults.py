"""Every fault on real brokers: its effect is looked at by other means than its own, and nothing of it remains."""

import json
import signal
import subprocess
import sys
import time

import pytest

from testbed.cgroups import ContainerCgroup
from testbed.faults import Faults, parse_fault
from testbed.kafka.types import ConfigResource, PartitionMove, TopicPartition
from testbed.network.namespaces import NamespaceShell
from testbed.provision.machine import without_cpu_limits
from testbed.provision.resources import remove
from testbed.provision.status import status
from testbed.provision.testbed import Testbed
from testbed.reassignment.driver import Driver
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import RATES
from testbed.throttle.journal import JournalFolder
from testbed.throttle.throttle import Throttle
from testbed.topology import loads
from testbed.wait import wait_until
from testbed.workload.preload import audit, preload
from testbed.workload.records import Fill, Recipe
from tests.containers.conftest import ROOT, carried, cli

pytestmark = pytest.mark.containers
NAME = "ci-faults"
TOPOLOGY = """
name: three-controllers
racks: {r1: {}, r2: {uplink: {rate: 200mbit}}}
kafka:
  version: 4.3.1
  # A killed broker may register anew once its session is over: 9 s by default.
  properties: {broker.session.timeout.ms: 5000, broker.heartbeat.interval.ms: 1000}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both, rack: r1}
  b2: {role: both, rack: r2}
  b3: {role: both, rack: r1, cpus: 1}
"""


@pytest.fixture(scope="module")
def up(own_state, engine):
    testbed = Testbed.up(loads(TOPOLOGY), name=NAME)
    yield testbed
    testbed.close()
    remove(engine, NAME)


@pytest.fixture
def put(up):
    """Put a fault in; when the test ends it is healed, and the testbed is as declared again."""
    faults = Faults(up)
    begun = time.monotonic()

    def add(text):
        fault_id = faults.add(parse_fault(text))
        print(f"{text}: in effect after {time.monotonic() - begun:.1f} s")
        return fault_id

    yield add
    healing = time.monotonic()
    faults.clear()
    print(f"healed in {time.monotonic() - healing:.1f} s")
    as_declared(up)


def as_declared(testbed):
    found = status(testbed, [fault.document() for fault in Faults(testbed).list()])
    assert found["ok"], found
    fabric, _pids = testbed.pids()
    shell = NamespaceShell("fabric", fabric)
    links = json.loads(shell.run(["ip", "-j", "link", "show"]).stdout)
    assert [link["ifname"] for link in links if "UP" not in link["flags"]] == []
    assert "clsact" not in shell.run(["tc", "qdisc", "show"]).stdout
    assert set(qdiscs(shell, "up0")) <= {"noqueue"}
    assert reached(testbed, "b1") == {"b2", "b3"}
    with testbed.admin() as admin:
        assert len(admin.cluster().brokers) == 3


def qdiscs(shell, device):
    return [qdisc["kind"] for qdisc in json.loads(shell.run(["tc", "-j", "qdisc", "show", "dev", device]).stdout)]


def java(testbed, host):
    """The processes of Kafka on a host: number and state. One that has ended and is not reaped yet (Z) is none."""
    told = testbed.hosts[host].run("ps -C java -o pid=,stat=", check=False).stdout
    found = [(int(line.split()[0]), line.split()[1]) for line in told.splitlines()]
    return [(pid, state) for pid, state in found if not state.startswith("Z")]


def reached(testbed, source):
    """The hosts that answer an echo request from `source`."""
    others = [host for host in testbed.hosts if host != source]
    pings = " & ".join(f"ping -qnc1 -W1 {testbed.plan.data_ip(h)} >/dev/null && echo {h}" for h in others)
    return set(testbed.hosts[source].run(f"{{ {pings} & wait; }}", check=False).stdout.split())


def echoes(testbed, host):
    """How many echo requests have arrived on a host."""
    rows = [line.split() for line in testbed.hosts[host].run("grep ^Icmp: /proc/net/snmp").stdout.splitlines()]
    return int(dict(zip(*rows, strict=True))["InEchos"])


def carried_mbit(testbed, source, target):
    """Payload from `source` to `target`, in Mbit/s."""
    return 8 * carried(testbed, source, target) / 1e6


def test_broker_kill(up, put):
    put("broker-kill host=b2")
    assert java(up, "b2") == []
    assert len(java(up, "b1")) == 1


def test_broker_term(up, put):
    put("broker-term host=b3")
    assert java(up, "b3") == []
    assert "App info kafka.server for 3 unregistered" in up.node("b3").log_tail(50)


def test_broker_pause(up, put):
    (process,) = java(up, "b2")
    put("broker-pause host=b2")
    (paused,) = java(up, "b2")
    assert (paused[0], paused[1][0]) == (process[0], "T")


def test_broker_restart(up, put):
    (before,) = java(up, "b3")
    put("broker-restart host=b3")
    (after,) = java(up, "b3")
    assert after[0] != before[0]


def test_controller_failover(up, put):
    with up.admin() as admin:
        before = admin.cluster().controller_id
    put("controller-failover")
    with up.admin() as admin:
        assert admin.cluster().controller_id not in (None, before)


def test_nic_rate_one_way_and_two_of_them(up, put):
    put("nic-rate host=b1 rate=40mbit direction=receive")
    first = put("nic-rate host=b1 rate=20mbit")
    assert 15 < carried_mbit(up, "b3", "b1") < 20
    Faults(up).clear(first)
    assert 30 < carried_mbit(up, "b3", "b1") < 40
    # Slowed it would carry 40, else 400, less where other tests keep the machine busy: the geometric mean decides.
    assert 126 < carried_mbit(up, "b1", "b3") < 400


def test_nic_down(up, put):
    put("nic-down host=b2")
    assert "NO-CARRIER" in up.hosts["b2"].run("ip link show data0").stdout
    assert reached(up, "b1") == {"b3"}
    assert len(java(up, "b2")) == 1


def test_nic_cut_both_ways(up, put):
    put("nic-cut hosts=b1 peers=b2")
    assert reached(up, "b1") == {"b3"}
    assert reached(up, "b3") == {"b1", "b2"}


def test_nic_cut_one_way(up, put):
    put("nic-cut hosts=b1 peers=b3 direction=transmit")
    arrived = echoes(up, "b3"), echoes(up, "b1")
    assert reached(up, "b1") == {"b2"}
    assert reached(up, "b3") == {"b2"}
    assert (echoes(up, "b3"), echoes(up, "b1")) == (arrived[0], arrived[1] + 1)


def test_uplink_cut(up, put):
    put("uplink-cut rack=r2")
    assert reached(up, "b1") == {"b3"}


@pytest.mark.parametrize("rack", ["r1", "r2"], ids=["none declared", "declared"])
def test_uplink_rate(up, put, rack):
    put(f"uplink-rate rack={rack} rate=20mbit")
    assert 15 < carried_mbit(up, "b1", "b2") < 20
    if rack == "r1":
        assert 300 < carried_mbit(up, "b1", "b3") < 400


def test_quota_alter(up, put):
    key = "follower.replication.throttled.rate"
    with up.admin() as admin:

        def own_rate_is_back():
            wait_until(lambda: dict(admin.broker_configs(2).broker) == {key: "5000000"}, 10, 0.1, "broker 2's own rate")

        admin.alter_configs(ConfigResource.broker(2), {key: "5000000"})
        own_rate_is_back()
        fault = put("quota-alter brokers=b1,b2 rate=1MB/s side=follower")
        assert [dict(admin.broker_configs(broker).broker) for broker in (1, 2)] == [{key: "1000000"}] * 2
        Faults(up).clear(fault)
        own_rate_is_back()
        assert dict(admin.broker_configs(1).broker) == {}
        fault = put("quota-alter brokers=b2 rate=none side=follower")
        assert dict(admin.broker_configs(2).broker) == {}
        Faults(up).clear(fault)
        own_rate_is_back()
        admin.alter_configs(ConfigResource.broker(2), {}, [key])


MOVE = [PartitionMove.between(TopicPartition("layers", 0), (1,), (2,))]
ORDERS = ["FTft", "FTtf", "TFft", "TFtf"]


@pytest.mark.parametrize("order", ORDERS)
def test_a_fault_and_a_throttle_in_every_order_leave_what_was_there(up, put, order):
    """F, T: the fault is put in, the throttle set; f, t: healed, restored. b2 has a rate of its own before."""
    with up.admin() as admin:
        admin.create_topic("layers", {0: [1]}, {})
        admin.alter_configs(ConfigResource.broker(2), dict.fromkeys(RATES, "7000000"))
        wait_until(lambda: rates(admin, 2) == ("7000000",) * 2, 10, 0.05, "b2 to show its own rate")
        before = {broker: rates(admin, broker) for broker in (1, 2)}
        throttle = Throttle(admin, JournalFolder())
        try:
            for step in order:
                if step == "F":
                    put("quota-alter brokers=b1,b2 rate=1MB/s")
                elif step == "T":
                    throttle.set(MOVE, 10_000_000)
                    throttle.wait_in_force(10)
                elif step == "f":
                    Faults(up).clear()
                else:
                    throttle.restore()
                if (order, step) in {("FTft", "f"), ("TFft", "f")}:
                    assert {rates(admin, broker) for broker in (1, 2)} == {("10000000",) * 2}
            assert {broker: rates(admin, broker) for broker in (1, 2)} == before
        finally:
            throttle.restore()
            admin.alter_configs(ConfigResource.broker(2), {}, list(RATES))
            admin.delete_topic("layers")
    assert JournalFolder().ids() == []


def rates(admin, broker):
    there = admin.broker_configs(broker).broker
    return tuple(there.get(key) for key in RATES)


SLOW = "nic-rate host=b2 rate=20mbit"
OTHER = "quota-alter brokers=b2 rate=20MB/s side=follower"


# That faults are healed in the reverse order the tests of a host's faults say as well, and the other order here.
@pytest.mark.parametrize(
    "clearing",
    [pytest.param(("other", "slow", "cut"), marks=pytest.mark.nightly), ("cut", "other", "slow")],
    ids=["last first", "middle first"],
)
def test_three_faults_on_one_host_during_a_throttled_move_are_healed_in_another_order(up, put, clearing):
    """The move goes on under all of them, ends, and leaves neither a throttle nor a fault."""
    with up.admin() as admin:
        # Broker 2 passes a change of its quota on to the active controller: it must not be cut off from that one.
        source, cut_off = (3, 1) if admin.cluster().controller_id == 3 else (1, 3)
        texts = {"slow": SLOW, "cut": f"nic-cut hosts=b2 peers=b{cut_off}", "other": OTHER}
        admin.create_topic("moving", {p: [source] for p in range(4)}, {})
        fill = Fill("moving", range(4), 500, Recipe(4096, 3))
        preload(up.bootstrap, [fill])
        plan = Plan({TopicPartition("moving", p): (2,) for p in range(4)})
        with Driver(admin, JournalFolder()) as driver:
            driver.execute(plan, 1_000_000)
            ids = {name: put(text) for name, text in texts.items()}
            assert rates(admin, 2) == ("1000000", "20000000")
            assert reached(up, "b2") == {f"b{source}"}
            for name in clearing:
                Faults(up).clear(ids.pop(name))
                assert (f"b{cut_off}" in reached(up, "b2")) == ("cut" not in ids)
                assert rates(admin, 2) == ("1000000", "20000000" if "other" in ids else "1000000")
                assert (carried_mbit(up, f"b{source}", "b2") < 20) == ("slow" in ids)
            seconds = driver.follow(timeout_s=60)
        print(f"moved in {seconds:.1f} s")
        assert driver.restored is not None and driver.restored.interferences == ()
        assert [rates(admin, broker) for broker in (1, 2, 3)] == [(None, None)] * 3
        found = audit(up.bootstrap, [fill])
        assert (found.lost, found.duplicated, found.corrupt) == (0, 0, 0)
        admin.delete_topic("moving")


def test_cpu_limit(up, put):
    burn = "import time; e = time.monotonic() + 1\nwhile time.monotonic() < e: pass\nprint(time.process_time())"
    group = ContainerCgroup.of(up.pids()[1]["b3"])
    assert group.cpus() == 1  # as its topology says
    with pytest.raises(KeyboardInterrupt), without_cpu_limits(up.engine, NAME, up.topology.hosts):
        assert group.cpus() is None
        raise KeyboardInterrupt
    assert group.cpus() == 1
    put("cpu-limit host=b3 cpus=0.2")
    with without_cpu_limits(up.engine, NAME, up.topology.hosts):
        assert group.cpus() is None
    assert group.cpus() == 0.2  # what the fault leaves it, not what the topology does
    assert float(up.hosts["b3"].run(["python3", "-c", burn]).stdout) < 0.3
    Faults(up).clear()
    # Kafka and the machine's other work want some of that second, too; under the limit no second has so much.
    wait_until(lambda: float(up.hosts["b3"].run(["python3", "-c", burn]).stdout) > 0.4, 20, 0.1, "half a core")
    assert group.cpus() == 1


def test_from_the_command_line(up, put):
    told = cli("fault", "add", NAME, "nic-rate", "host=b1", "rate=20mbit", "cpu-limit", "host=b2", "cpus=0.5")
    assert told.returncode == 0, told.stderr
    listed = json.loads(cli("fault", "list", NAME, "--json").stdout)
    assert [each["fault"] for each in listed] == ["nic-rate host=b1 rate=20mbit", "cpu-limit host=b2 cpus=0.5"]
    said = cli("status", NAME).stdout
    assert "20mbit; declared is 400mbit" in said
    assert f"fault {listed[1]['id']}: cpu-limit host=b2 cpus=0.5, since {listed[1]['since']}, by hand" in said
    assert cli("gc").stdout == "nothing to collect\n"
    refused = cli("fault", "add", NAME, "nic-rate", "host=b9", "rate=20mbit")
    assert (refused.returncode, "has no host 'b9'" in refused.stderr) == (64, True)
    cleared = cli("fault", "clear", NAME)
    assert (cleared.returncode, len(cleared.stdout.splitlines())) == (0, 2), cleared.stderr


def test_status_tells_of_faults_links_and_hosts_that_do_not_answer(up, put, engine):
    put("nic-down host=b2")
    (container,) = [found.id for found in engine.containers(NAME) if found.host == "b3"]
    subprocess.run(["docker", "pause", container], check=True, capture_output=True)
    try:
        told = cli("status", NAME, "--json")
    finally:
        subprocess.run(["docker", "unpause", container], check=True, capture_output=True)
    found = json.loads(told.stdout)
    assert (told.returncode, found["ok"]) == (1, False), told.stderr
    assert [fault["fault"] for fault in found["faults"]] == ["nic-down host=b2"]
    assert found["links"] == ["the switch's end of b2 data0 is down (port1 in the fabric)"]
    assert list(found["silent"]) == ["b3"]
    assert [uplink["rack"] for uplink in found["uplinks"]] == ["r2"]
    # A container that is paused runs: its host is whole, and does not answer.
    assert (found["shaping"], found["problems"]) == ([], [])


def test_a_killed_holders_faults_are_healed_by_gc(up, put):
    texts = ["quota-alter brokers=b1 rate=1MB/s", "nic-rate host=b1 rate=20mbit", "cpu-limit host=b1 cpus=0.5"]
    texts += ["nic-cut hosts=b1 peers=b3", "broker-kill host=b3"]
    code = (
        "import signal\nfrom testbed.faults import Faults, parse_fault\nfrom testbed.provision.testbed import Testbed\n"
        f"faults = Faults(Testbed.attach({NAME!r}))\n"
        f"for text in {texts!r}: faults.add(parse_fault(text))\n"
        "print('held', flush=True)\nsignal.pause()"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert java(up, "b3") == []
    told = cli("gc")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith(f"{NAME}: healed of {', '.join(texts)}, whose")
    with up.admin() as admin:
        assert dict(admin.broker_configs(1).broker) == {}
    assert Faults(up).list() == ()
