"""What a topology cannot have is refused before anything is changed, and says why."""

import re

import pytest

from testbed.errors import TestbedError, UsageError
from testbed.faults import Faults, parse_fault
from testbed.topology import loads
from tests.faults.fakes import RACKS, THREE

KAFKA = "Kafka runs on b1, b2 or b3"


@pytest.mark.parametrize(
    ("topology", "text", "told"),
    [
        (THREE, "broker-kill host=b9", "three has no host 'b9'; it has b1, b2, b3 or load"),
        (THREE, "broker-term host=load", f"load runs no Kafka, its role is client; {KAFKA}"),
        (THREE, "broker-pause host=laod", "no host 'laod'; it has b1, b2, b3 or load; did you mean load?"),
        (THREE, "broker-restart host=load", f"load runs no Kafka, its role is client; {KAFKA}"),
        (THREE, "controller-failover", "three has 1 controller, b1: without one of them there is no majority"),
        (THREE, "nic-rate host=b9 rate=1mbit", "no host 'b9'"),
        (THREE, "nic-rate host=b1 rate=400mbit", "rate=400mbit would slow nothing down: b1 has 400mbit"),
        (RACKS, "nic-rate host=b4 rate=400mbit", "would slow nothing down: b4 has 400mbit"),
        (RACKS, "nic-rate host=b4 rate=100mbit nic=repl0", "would slow nothing down: b4 has 100mbit"),
        (THREE, "nic-rate host=b1 rate=1mbit nic=data1", "b1 has no NIC 'data1'; it has data0; did you mean data0?"),
        (THREE, "nic-down host=b1 nic=x", "b1 has no NIC 'x'; it has data0"),
        (THREE, "nic-cut hosts=b1 peers=b7", "no host 'b7'"),
        (THREE, "nic-cut hosts=b1,b2 peers=b2,b3", "b2 cannot be in both hosts and peers"),
        (THREE, "nic-cut hosts=b1,b2,b3,load", "are all hosts of three: there is no host to cut them from"),
        (THREE, "uplink-cut rack=r1", "three has one rack: no host's traffic passes its uplink"),
        (RACKS, "uplink-cut rack=r3", "racks has no rack 'r3'; it has r1 or r2"),
        (RACKS, "uplink-rate rack=r1 rate=1gbit", "would slow nothing down: the uplink of r1 has 200mbit"),
        (THREE, "quota-alter brokers=load rate=1MB/s", "load is no broker, it is a client; b1, b2 or b3 are"),
        (THREE, "cpu-limit host=b9 cpus=0.5", "no host 'b9'"),
        (THREE, "memory-limit host=b9 memory=900MiB", "no host 'b9'"),
        (THREE, "disk-full host=load", f"load runs no Kafka, its role is client; {KAFKA}"),
        (THREE, "disk-full host=b1", "b1 has no disk of its own: disk-full would be a fault of the machine's disk"),
        (THREE, "disk-slow host=b2 rate=5MB/s", "b2 has no disk of its own"),
        (THREE, "disk-read-only host=b2", "b2 has no disk of its own"),
        (THREE, "broker-stall host=b1 pause=5s every=5s", "allowed is a pause of 20ms or more, 20ms or more between"),
        (THREE, "broker-stall host=b1 pause=1s every=700s", "not pause=1s every=700s"),
        (THREE, "clock-skew host=load by=5min", f"load runs no Kafka, its role is client; {KAFKA}"),
        (THREE, "nic-impair host=b1", "no share is given: corrupt, duplicate or reorder, such as corrupt=1%"),
        (THREE, "nic-impair host=b1 corrupt=1% nic=x", "b1 has no NIC 'x'"),
        (THREE, "client-stampede host=load brokers=load", "load is no broker"),
        (THREE, "client-stampede host=load connections=2", "2 connections do not reach 3 brokers"),
        (THREE, "reassignment-alter to=b9", "no host 'b9'"),
    ],
)
def test_what_a_topology_cannot_have(topology, text, told):
    with pytest.raises(UsageError, match=re.escape(told)):
        parse_fault(text).check(topology)


LAB = loads("""
name: lab
provision: inventory
inventory: {user: ops, key: id}
kafka: {version: 4.3.1}
defaults: {nic: {device: eth0, rate: 100mbit}}
hosts: {b1: {role: both, ssh: {address: 198.18.5.2}}, s1: {role: objectstore, ssh: {address: 198.18.5.3}}}
""")
SPREAD = loads("""
name: spread
machines: {here: {engine: local}, there: {engine: "ssh://root@10.0.0.5"}}
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts: {b1: {role: both, machine: there}, b2: {role: broker, machine: here}, s1: {role: objectstore, machine: there}}
""")


WIDE = loads("""
name: wide
machines: {here: {engine: local}, there: {engine: "ssh://root@10.0.0.5"}}
racks: {r1: {}, r2: {}}
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both, rack: r1, machine: here}
  b2: {role: broker, rack: r1, machine: there}
  b3: {role: broker, rack: r2, machine: here}
""")


@pytest.mark.parametrize("text", ["uplink-cut rack=r1", "uplink-rate rack=r1 rate=50mbit"])
def test_a_rack_on_several_machines_has_no_uplink_for_a_fault(text):
    with pytest.raises(UsageError, match="^rack r1 has hosts on several machines: it has no single uplink"):
        parse_fault(text).check(WIDE)
    parse_fault(text.replace("r1", "r2")).check(WIDE)


@pytest.mark.parametrize("topology", [LAB, SPREAD], ids=["exists", "another engine"])
@pytest.mark.parametrize("text", ["memory-limit host=b1 memory=900MiB", "objectstore-errors host=s1 operations=put"])
def test_the_kernel_of_another_machine_is_not_changed(topology, text):
    host, kind = text.split()[1].removeprefix("host="), text.split()[0]
    with pytest.raises(UsageError, match=f"^{host} is not a container of this machine: {kind} cannot change the"):
        parse_fault(text).check(topology)
    parse_fault("memory-limit host=b2 memory=900MiB").check(SPREAD)


@pytest.mark.parametrize(
    ("first", "text", "told"),
    [
        ("broker-kill host=b2", "broker-kill host=b2", "Kafka on b2 does not run: it has broker-kill already"),
        ("broker-kill host=b2", "broker-pause host=b2", "Kafka on b2 does not run: it has broker-kill already"),
        ("broker-pause host=b2", "broker-term host=b2", "Kafka on b2 is paused: it has broker-pause already"),
        ("broker-pause host=b2", "broker-restart host=b2", "Kafka on b2 is paused: it has broker-pause already"),
        (
            None,
            "quota-alter brokers=b1 rate=none",
            "nothing would change: broker 1 leader.replication.throttled.rate=not",
        ),
        (None, "cpu-limit host=b1 cpus=1000", "cpus=1000 would limit nothing: this machine has"),
        (None, "memory-limit host=b1 memory=4000GiB", "memory=4000GiB would limit nothing: this machine has"),
        (None, "memory-limit host=b1 memory=200MiB", "is less than the processes of b1 use now, 314572800 bytes"),
        (None, "reassignment-alter", "nothing moves now: reassignment-alter has nothing to change"),
        ("broker-kill host=b2", "broker-stall host=b2 pause=1s every=2s", "Kafka on b2 does not run: it has"),
        ("broker-pause host=b2", "broker-stall host=b2 pause=1s every=2s", "Kafka on b2 is paused: it has"),
    ],
)
def test_what_could_not_take_effect_now(one, faults, first, text, told):
    if first:
        faults.add(parse_fault(first))
    before = one.kernel.changes[:]
    with pytest.raises(TestbedError, match=told):
        faults.add(parse_fault(text))
    assert one.kernel.changes == before
    assert len(faults.list()) == (1 if first else 0)


def test_what_died_by_itself_is_refused_with_a_hint(one, faults):
    one.nodes["b2"].state = None
    with pytest.raises(TestbedError, match="Kafka on b2 does not run; `testbed logs one b2` may say why"):
        faults.add(parse_fault("broker-kill host=b2"))


def test_a_failover_needs_a_majority_that_is_left(racks):
    faults = Faults(racks)
    faults.add(parse_fault("broker-kill host=b3"))
    with pytest.raises(TestbedError, match=r"only b1, b2 of 3 controllers run: without b1 there is no majority \(2\)"):
        faults.add(parse_fault("controller-failover"))
