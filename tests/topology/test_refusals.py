# ruff: noqa: E501 - messages are written as they are printed
"""Every mistake is answered with file, line, column, field, what was found, what is allowed, and the nearest name."""

from pathlib import Path
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.topology import (
    AutomqSource,
    DeclaredHost,
    Disk,
    Impairment,
    Link,
    Nic,
    NicUse,
    RemoteStorage,
    Role,
    Topology,
    TopologyError,
    load,
    load_document,
    loads,
)

GOOD = """\
name: t
racks: [r1, r2]
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both, rack: r1}
  b2: {role: broker, rack: r2}
"""


TO_HOSTS = GOOD[GOOD.index("kafka") : GOOD.index("  b1")]
WITH_STORE = "\ndefaults: {nic: {rate: 400mbit}}\nhosts:\n  s1: {role: objectstore, rack: r1}\n"


def refusal(text: str) -> list[str]:
    with pytest.raises(TopologyError) as refused:
        loads(text, "t.yaml")
    lines = str(refused.value).split("\n")
    assert lines == [str(problem) for problem in refused.value.problems]
    return lines


def changed(there: str, instead: str) -> str:
    assert there in GOOD
    return GOOD.replace(there, instead)


def test_the_unchanged_text_is_good() -> None:
    assert loads(GOOD).host("b2").rack == "r2"


@pytest.mark.parametrize(
    ("there", "instead", "line"),
    [
        # names and fields
        ("hosts:\n", "hots:\n", "t.yaml:5:1: hots: unknown field hots; allowed: name, description, provision, inventory, racks, machines, mtu, kafka, software, remote_storage, defaults, roles or hosts; did you mean hosts?"),
        ("name: t", "name: Big Test", "t.yaml:1:7: name: Big Test cannot name a topology; allowed: a small letter, then small letters, digits and -, 31 at most"),
        ("b2:", "b_2:", "t.yaml:7:3: hosts.b_2: b_2 cannot name a host; allowed: a small letter, then small letters, digits and -, 15 at most"),
        ("b2:", "b1:", "t.yaml:7:3: hosts.b1: given twice, first in line 6; allowed: once"),
        ("name: t\n", "name: t\nname: u\n", "t.yaml:2:1: name: given twice, first in line 1; allowed: once"),
        ("name: t\n", "", "t.yaml:1:1: name: missing; allowed: the topology's name, such as two-brokers"),
        ("{role: broker, rack: r2}", "{rack: r2}", "t.yaml:7:3: hosts.b2.role: missing; allowed: broker, controller, both, client or objectstore"),
        ("role: broker", "role: brokr", "t.yaml:7:14: hosts.b2.role: brokr is not a role; allowed: broker, controller, both, client or objectstore; did you mean broker?"),
        ("role: broker", "role: [broker]", "t.yaml:7:14: hosts.b2.role: a list is not a role; allowed: broker, controller, both, client or objectstore"),
        ("role: broker", "rol: broker", "t.yaml:7:8: hosts.b2.rol: unknown field rol; allowed: role, rack, nic, nics, disk, cpus, kafka, node_id, ssh or machine; did you mean role?"),
        ("role: broker", "role: broker, rate: 1mbit", "t.yaml:7:22: hosts.b2.rate: unknown field rate; allowed: role, rack, nic, nics, disk, cpus, kafka, node_id, ssh or machine; did you mean nic: {rate: …}?"),
        ("{role: broker, rack: r2}", "7", "t.yaml:7:7: hosts.b2: 7 instead of a mapping; allowed: role, rack, nic, nics, disk, cpus, kafka, node_id, ssh or machine"),
        ("{role: broker, rack: r2}", "", "t.yaml:7:6: hosts.b2: nothing is given; allowed: a value, or leave the field out"),
        ("defaults: {nic: {rate: 400mbit}}", "nic: {rate: 400mbit}\ndefaults: {nic: {rate: 400mbit}}", "t.yaml:4:1: nic: unknown field nic; allowed: name, description, provision, inventory, racks, machines, mtu, kafka, software, remote_storage, defaults, roles or hosts; did you mean defaults: {nic: …}?"),
        ("defaults: {", "defaults: {kafka: {version: 4.3.1}, ", "t.yaml:4:12: defaults.kafka: unknown field kafka; allowed: nic, nics, disk or cpus; did you mean kafka at the top of the file? It holds for every host"),
        # racks
        ("rack: r2", "rack: r3", "t.yaml:7:28: hosts.b2.rack: there is no rack r3; allowed: r1 or r2"),
        ("rack: r2", "rack: R2", "t.yaml:7:28: hosts.b2.rack: there is no rack R2; allowed: r1 or r2; did you mean r2?"),
        (", rack: r2", "", "t.yaml:7:3: hosts.b2.rack: no rack given, and there are several; allowed: r1 or r2"),
        ("[r1, r2]", "[r1, r2, r1]", "t.yaml:2:17: racks[2]: r1 is listed twice; allowed: each rack once"),
        ("[r1, r2]", "[r1, r2, 3]", "t.yaml:2:17: racks[2]: 3 cannot name a rack; allowed: a small letter, then small letters, digits and -, 15 at most"),
        ("[r1, r2]", "r1", "t.yaml:2:8: racks: r1 instead of a list; allowed: a list, such as [r1, r2]"),
        ("[r1, r2]", "[]", "t.yaml:2:8: racks: it is empty; allowed: one or more"),
        ("[r1, r2]", "{r1: {}, r3: {}}", "t.yaml:7:28: hosts.b2.rack: there is no rack r2; allowed: r1 or r3"),
        ("[r1, r2]", "{r1: {}, R2: {}}", "t.yaml:2:17: racks.R2: R2 cannot name a rack; allowed: a small letter, then small letters, digits and -, 15 at most"),
        ("[r1, r2]", "{}", "t.yaml:2:8: racks: it is empty; allowed: one or more"),
        ("[r1, r2]", "{r1: {uplinks: {rate: 1mbit}}, r2: {}}", "t.yaml:2:14: racks.r1.uplinks: unknown field uplinks; allowed: uplink; did you mean uplink?"),
        ("[r1, r2]", "{r1: {rate: 1mbit}, r2: {}}", "t.yaml:2:14: racks.r1.rate: unknown field rate; allowed: uplink; did you mean uplink: {rate: …}?"),
        ("[r1, r2]", "{r1: {uplink: {tx_rate: 1mbit}}, r2: {}}", "t.yaml:2:14: racks.r1.uplink.rx_rate: no rate at which rack r1 can receive; allowed: 8kbit to 100gbit, here"),
        ("[r1, r2]", "{r1: {uplink: {rate: 1mbit, name: up}}, r2: {}}", "t.yaml:2:36: racks.r1.uplink.name: unknown field name; allowed: rate, tx_rate, rx_rate, burst, tx_burst, rx_burst, delay, jitter, loss, rx_delay, rx_jitter or rx_loss"),
        ("[r1, r2]", "{r1: {uplink: {rate: 1mbit, burst: 1GB}}, r2: {}}", "t.yaml:2:43: racks.r1.uplink.burst: a burst of 1GB is too large at 1mbit; allowed: 1514B (one frame) to 125kB, or left out for 1 ms of the rate (for rack r1)"),
        # delay and loss
        ("rate: 400mbit", "rate: 400mbit, delay: 20", "t.yaml:4:40: defaults.nic.delay: 20 has no unit; allowed: a number and us, ms, s, min or h; did you mean 20s?"),
        ("rate: 400mbit", "rate: 400mbit, delay: 20sm", "t.yaml:4:40: defaults.nic.delay: 20sm has an unknown unit; allowed: a number and us, ms, s, min or h; did you mean 20s?"),
        ("rate: 400mbit", "rate: 400mbit, delay: 1min", "t.yaml:4:40: defaults.nic.delay: 1min is too long; allowed: 10s at most"),
        ("rate: 400mbit", "rate: 400mbit, delay: 0.0001ms", "t.yaml:4:40: defaults.nic.delay: 0.0001ms is not a whole number of microseconds; allowed: a number and us, ms, s, min or h"),
        ("rate: 400mbit", "rate: 400mbit, jitter: 2ms", "t.yaml:4:41: defaults.nic.jitter: a jitter of 2ms around a delay of 0s would arrive before it was sent; allowed: 0s at most (for b1)\nt.yaml:4:41: defaults.nic.jitter: a jitter of 2ms around a delay of 0s would arrive before it was sent; allowed: 0s at most (for b2)"),
        ("rate: 400mbit", "rate: 400mbit, loss: 0.1", "t.yaml:4:39: defaults.nic.loss: 0.1 has no unit; allowed: a number and % or ppm; did you mean 0.1%?"),
        ("rate: 400mbit", "rate: 400mbit, loss: 100%", "t.yaml:4:39: defaults.nic.loss: 100% is too much for anything to pass; allowed: 50% at most"),
        ("rate: 400mbit", "rate: 400mbit, rx_loss: 60%", "t.yaml:4:42: defaults.nic.rx_loss: 60% is too much for anything to pass; allowed: 50% at most"),
        # several NICs
        ("role: broker", "role: broker, nics: {data0: {}, repl0: {use: replication}}", "t.yaml:7:28: hosts.b2.nics: b2 replicates on its NIC number 2 and b1 on number 1, which do not meet; allowed: the same number on every broker"),
        ("role: broker", "role: broker, nics: {data0: {use: replication}}", "t.yaml:7:3: hosts.b2.nic.use: the first NIC is the one for data, not for replication; allowed: data"),
        ("role: broker", "role: broker, nics: {data0: {use: clients}}", "t.yaml:7:42: hosts.b2.nics.data0.use: clients is no use of a NIC; allowed: data or replication"),
        ("role: broker", "role: broker, nics: {eth0: {}}", "t.yaml:7:29: hosts.b2.nics.eth0: eth0 is taken (lo is loopback, eth0 the management NIC); allowed: any other name, such as data0"),
        ("role: broker", "role: broker, nics: {}", "t.yaml:7:28: hosts.b2.nics: it is empty; allowed: one or more"),
        ("role: broker", "role: broker, nic: {}, nics: {data0: {}}", "t.yaml:7:37: hosts.b2.nics: nics and nic are both given; allowed: nic alone (one NIC), or nics (each by its name)"),
        ("role: broker", "role: broker, nics: {a: {}, b: {}, c: {}, d: {}}", "t.yaml:7:28: hosts.b2.nics: too many entries; allowed: 3 at most"),
        ("role: broker", "role: broker, nics: {a: {name: b}}", "t.yaml:7:39: hosts.b2.nics.a.name: the names of several NICs stand in nics; allowed: no name here"),
        # disks
        ("role: broker", "role: broker, disk: {size: 2GB/s}", "t.yaml:7:35: hosts.b2.disk.size: 2GB/s is a byte rate, not a size; allowed: a number and B, kB, MB, GB, KiB, MiB or GiB; did you mean 2GB?"),
        ("role: broker", "role: broker, disk: {size: 20MB}", "t.yaml:7:35: hosts.b2.disk.size: a disk of 20MB is too small; allowed: 100MB to 1024GiB"),
        ("role: broker", "role: broker, disk: {size: 2GB, bandwidth: 10mbit}", "t.yaml:7:51: hosts.b2.disk.bandwidth: 10mbit is a bit rate, not a byte rate; allowed: a number and kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s; did you mean 1.25MB/s?"),
        ("role: broker", "role: broker, disk: {bandwidth: 10MB/s}", "t.yaml:7:22: hosts.b2.disk.size: no size; allowed: 100MB to 1024GiB, here, at its role or in defaults"),
        ("role: broker", "role: client, disk: {size: 2GB}", "t.yaml:7:28: hosts.b2.disk: a client has no Kafka data; allowed: role, rack, nic and cpus (or another role)"),
        # object stores, and what lies on them
        ("role: broker", "role: objectstor", "t.yaml:7:14: hosts.b2.role: objectstor is not a role; allowed: broker, controller, both, client or objectstore; did you mean objectstore?"),
        ("role: broker", "role: objectstore, kafka: {version: 4.3.1}", "t.yaml:7:34: hosts.b2.kafka: an object store runs no Kafka; allowed: role, rack, nic, cpus and disk (or another role)"),
        ("role: broker", "role: objectstore, node_id: 3", "t.yaml:7:36: hosts.b2.node_id: an object store has no node id; allowed: role, rack, nic, cpus and disk (or another role)"),
        ("hosts:", "roles: {objectstore: {kafka: {version: 4.3.1}}}\nhosts:", "t.yaml:5:23: roles.objectstore.kafka: unknown field kafka; allowed: nic, nics, disk or cpus (an object store runs no Kafka)"),
        ("hosts:", "remote_storage: {}\nhosts:", "t.yaml:5:17: remote_storage: no host is an object store; allowed: at least one with role objectstore"),
        ("hosts:", "remote_storage: {manger: jars}\nhosts:", "t.yaml:5:18: remote_storage.manger: unknown field manger; allowed: manager; did you mean manager?"),
        ("hosts:\n", "remote_storage: {manager: ''}\nhosts:\n  s1: {role: objectstore, rack: r1}\n", "t.yaml:5:27: remote_storage.manager: '' is no path; allowed: the folder with the jars of a RemoteStorageManager, such as ../tiered-storage"),
        ("hosts:\n", "remote_storage: 1\nhosts:\n", "t.yaml:5:17: remote_storage: 1 instead of a mapping; allowed: manager"),
        ("kafka: {version: 4.3.1}", "software: {automq: {}}", "t.yaml:3:20: software.automq: no host is an object store; allowed: at least one with role objectstore"),
        ("hosts:\n", "software: {automq: {}}\nhosts:\n  s1: {role: objectstore, rack: r1}\n", "t.yaml:3:18: kafka.version: this cluster is AutoMQ's (software.automq); allowed: no version or path of Apache Kafka with it"),
        (TO_HOSTS, "software: {automq: {path: a, image: b}}" + WITH_STORE, "t.yaml:3:20: software.automq: image and path are both given; allowed: one of the two, or neither (then TESTBED_AUTOMQ says)"),
        (TO_HOSTS, "software: {automq: {image: a b}}" + WITH_STORE, "t.yaml:3:28: software.automq.image: a b is no image; allowed: a name the container engine knows, such as automq:1.5.0"),
        (TO_HOSTS, "software: {auto_mq: {}}" + WITH_STORE, "t.yaml:3:12: software.auto_mq: unknown field auto_mq; allowed: automq; did you mean automq?"),
        (TO_HOSTS, "software: {}" + WITH_STORE, "t.yaml:3:1: software.automq: missing; allowed: what the cluster runs: automq, such as {automq: {path: ../automq}}"),
        (TO_HOSTS, "software: 4.3.1" + WITH_STORE, "t.yaml:3:11: software: 4.3.1 instead of a mapping; allowed: automq"),
        # rates and bursts
        ("400mbit", "400", "t.yaml:4:24: defaults.nic.rate: 400 has no unit; allowed: a number and kbit, mbit or gbit; did you mean 400mbit?"),
        ("400mbit", "10MB/s", "t.yaml:4:24: defaults.nic.rate: 10MB/s is a byte rate, not a bit rate; allowed: a number and kbit, mbit or gbit; did you mean 80mbit?"),
        ("400mbit", "400mbps", "t.yaml:4:24: defaults.nic.rate: 400mbps can be read as bits or as bytes; allowed: a number and kbit, mbit or gbit; did you mean 400mbit?"),
        ("400mbit", "0mbit", "t.yaml:4:24: defaults.nic.rate: 0mbit is too slow; allowed: 8kbit to 100gbit"),
        ("400mbit", "7.9kbit", "t.yaml:4:24: defaults.nic.rate: 7.9kbit is too slow; allowed: 8kbit to 100gbit"),
        ("400mbit", "101gbit", "t.yaml:4:24: defaults.nic.rate: 101gbit is too fast; allowed: 8kbit to 100gbit"),
        ("400mbit", "-4mbit", "t.yaml:4:24: defaults.nic.rate: -4mbit is negative; allowed: a number and kbit, mbit or gbit, not below zero"),
        ("400mbit", ".nan", "t.yaml:4:24: defaults.nic.rate: .nan has no unit; allowed: a number and kbit, mbit or gbit"),
        ("400mbit", ".inf", "t.yaml:4:24: defaults.nic.rate: .inf has no unit; allowed: a number and kbit, mbit or gbit"),
        ("400mbit", "true", "t.yaml:4:24: defaults.nic.rate: true is not a bit rate; allowed: a number and kbit, mbit or gbit"),
        ("{nic: {rate: 400mbit}}", "{nic: {rate: }}", "t.yaml:4:23: defaults.nic.rate: nothing is given; allowed: a value, or leave the field out"),
        ("rate: 400mbit", "rate: 400mbit, tx_rate: 1mbit", "t.yaml:4:17: defaults.nic: rate and tx_rate are both given; allowed: rate alone (both ways), or tx_rate and rx_rate"),
        ("rate: 400mbit", "rate: 400mbit, burst: 50000", "t.yaml:4:40: defaults.nic.burst: 50000 has no unit; allowed: a number and B, kB, MB, GB, KiB, MiB or GiB; did you mean 50kB?"),
        ("rate: 400mbit", "rate: 400mbit, burst: 1kB", "t.yaml:4:40: defaults.nic.burst: a burst of 1kB is too small; allowed: 1.514kB (one frame) or more"),
        ("role: broker", "role: broker, nic: {tx_burst: 1GB}", "t.yaml:7:38: hosts.b2.nic.tx_burst: a burst of 1GB is too large at 400mbit; allowed: 1514B (one frame) to 50MB, or left out for 1 ms of the rate (for b2)"),
        ("rate: 400mbit", "rate: 400mbit, name: eth0", "t.yaml:4:39: defaults.nic.name: eth0 is taken (lo is loopback, eth0 the management NIC); allowed: any other name, such as data0"),
        # Kafka
        ("version: 4.3.1", "version: 4.3", "t.yaml:3:18: kafka.version: 4.3 is a number, not a Kafka version; allowed: all three numbers, such as 4.3.1 or 4.3.0-rc1; did you mean 4.3.0?"),
        ("version: 4.3.1", "version: '4.10'", "t.yaml:3:18: kafka.version: 4.10 is not a Kafka version; allowed: all three numbers, such as 4.3.1 or 4.3.0-rc1; did you mean 4.10.0?"),
        ("version: 4.3.1", "version: v4.3.1", "t.yaml:3:18: kafka.version: v4.3.1 is not a Kafka version; allowed: all three numbers, such as 4.3.1 or 4.3.0-rc1; did you mean 4.3.1?"),
        ("version: 4.3.1", "version: latest", "t.yaml:3:18: kafka.version: latest is not a Kafka version; allowed: all three numbers, such as 4.3.1 or 4.3.0-rc1"),
        ("version: 4.3.1", "version: 2.8.2", "t.yaml:3:18: kafka.version: 2.8.2 is too old; allowed: 3.9.0 (from which everything newer can be upgraded) or newer"),
        ("{version: 4.3.1}", "{version: 4.3.1, properties: {node.id: 1}}", "t.yaml:3:38: kafka.properties[node.id]: node.id is not yours to set; instead: write node_id at the host"),
        ("{version: 4.3.1}", "{version: 4.3.1, properties: {controller.quorum.voters: 1@b1:9093}}", "t.yaml:3:38: kafka.properties[controller.quorum.voters]: controller.quorum.voters is not yours to set; instead: the testbed sets it from the hosts' roles"),
        ("{version: 4.3.1}", "{version: 4.3.1, properties: {log.dirs: /tmp}}", "t.yaml:3:38: kafka.properties[log.dirs]: log.dirs is not yours to set; instead: each host has one data folder, wiped with its cluster"),
        ("{version: 4.3.1}", "{version: 4.3.1, properties: {a b: 1}}", "t.yaml:3:38: kafka.properties[a b]: a b is not a property name; allowed: letters, digits and . _ -, 200 at most"),
        ("{version: 4.3.1}", "{version: 4.3.1, properties: {a: [b]}}", "t.yaml:3:41: kafka.properties.a: a list is no property value; allowed: text, a number, true or false (a list is text: a,b,c)"),
        ("{version: 4.3.1}", "{version: 4.3.1, properties: {a: yes}}", "t.yaml:3:41: kafka.properties.a: yes is no Kafka value; allowed: true or false for a switch; did you mean true?"),
        ("{version: 4.3.1}", '{version: 4.3.1, properties: {a: "b\\nnode.id=7"}}', "t.yaml:3:41: kafka.properties.a: 'b\\nnode.id=7' has a line break or a control character in it; allowed: one line of text"),
        # node ids and duties
        ("role: broker", "role: broker, node_id: two", "t.yaml:7:31: hosts.b2.node_id: two is not a node id; allowed: a whole number from 0 to 2147483647"),
        ("role: broker", "role: broker, node_id: -1", "t.yaml:7:31: hosts.b2.node_id: -1 is not a node id; allowed: a whole number from 0 to 2147483647"),
        ("role: broker", "role: client, node_id: 3", "t.yaml:7:31: hosts.b2.node_id: a client has no node id; allowed: role, rack, nic and cpus (or another role)"),
        ("role: broker", "role: client, kafka: {version: 4.3.1}", "t.yaml:7:29: hosts.b2.kafka: a client runs no Kafka; allowed: role, rack, nic and cpus (or another role)"),
        ("hosts:", "roles: {client: {kafka: {version: 4.3.1}}}\nhosts:", "t.yaml:5:18: roles.client.kafka: unknown field kafka; allowed: nic, nics or cpus (a client runs no Kafka)"),
        ("hosts:", "roles: {brokers: {}}\nhosts:", "t.yaml:5:9: roles.brokers: unknown field brokers; allowed: broker, controller, both, client or objectstore; did you mean broker?"),
        ("role: both", "role: broker", "t.yaml:5:1: hosts: no host is a controller; allowed: at least one with role controller or both"),
    ],
)  # fmt: skip
def test_one_mistake_is_one_line(there: str, instead: str, line: str) -> None:
    assert refusal(changed(there, instead)) == line.split("\n")


def test_what_every_host_lacks_is_told_for_each() -> None:
    assert refusal(changed("kafka: {version: 4.3.1}\n", "")) == [
        f"t.yaml:{line}:3: hosts.{name}.kafka.version: no Kafka version; allowed: a release such as 4.3.1, here, "
        "at its role or in kafka at the top"
        for line, name in ((5, "b1"), (6, "b2"))
    ]
    assert refusal(changed("{rate: 400mbit}", "{tx_rate: 400mbit}")) == [
        f"t.yaml:{line}:3: hosts.{name}.nic.rx_rate: no rate at which {name} can receive; "
        "allowed: 8kbit to 100gbit, here, at its role or in defaults"
        for line, name in ((6, "b1"), (7, "b2"))
    ]


def test_no_broker() -> None:
    text = changed("role: both", "role: controller").replace("role: broker", "role: client")
    assert refusal(text) == ["t.yaml:5:1: hosts: no host is a broker; allowed: at least one with role broker or both"]


def test_two_hosts_with_one_node_id() -> None:
    text = GOOD.replace("rack: r1}", "rack: r1, node_id: 7}").replace("rack: r2}", "rack: r2, node_id: 7}")
    assert refusal(text) == ["t.yaml:7:41: hosts.b2.node_id: 7 is already the node id of b1; allowed: each id once"]


def test_all_mistakes_in_single_values_are_reported_at_once() -> None:
    text = """\
nam: t
racks: [r1]
kafka: {version: 4.3, properties: {listeners: x}}
defaults: {nic: {rate: 400}}
hosts:
  b1: {role: bth, rack: r1}
  b1: {role: broker}
  b2: {role: broker, rack: r3, node_id: 2}
  b3: {role: broker, rack: r1, node_id: 2, nic: {rate: 1gbit, brust: 1MB}}
  B4: {role: client, rack: r4, node_id: 4}
"""
    with pytest.raises(TopologyError) as refused:
        loads(text, "t.yaml")
    assert [(problem.line, problem.column, problem.field) for problem in refused.value.problems] == [
        (1, 1, "nam"),
        (3, 18, "kafka.version"),
        (3, 36, "kafka.properties.listeners"),
        (4, 24, "defaults.nic.rate"),
        (6, 14, "hosts.b1.role"),
        (7, 3, "hosts.b1"),
        (9, 63, "hosts.b3.nic.brust"),
        (10, 3, "hosts.B4"),
    ]


def test_all_broken_rules_are_reported_at_once() -> None:
    text = """\
name: t
racks: [r1]
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: broker, rack: r1}
  b2: {role: broker, rack: r3, node_id: 2}
  b3: {role: broker, rack: r1, node_id: 2, nic: {burst: 1GB, jitter: 1s}}
  l4: {role: client, rack: r4, node_id: 4}
"""
    with pytest.raises(TopologyError) as refused:
        loads(text, "t.yaml")
    assert [(problem.line, problem.column, problem.field) for problem in refused.value.problems] == [
        (5, 1, "hosts"),
        (7, 28, "hosts.b2.rack"),
        (8, 41, "hosts.b3.node_id"),
        (8, 57, "hosts.b3.nic.burst"),
        (8, 70, "hosts.b3.nic.jitter"),
        (9, 28, "hosts.l4.rack"),
        (9, 41, "hosts.l4.node_id"),
    ]


def test_it_is_a_usage_error() -> None:
    assert issubclass(TopologyError, UsageError)


def test_a_document_has_fields_but_no_lines() -> None:
    document: dict[str, Any] = loads(GOOD).to_document()
    document["hosts"]["b2"]["node_id"] = "r9"
    document["hosts"]["b1"]["nic"]["tx_rate"] = 5
    with pytest.raises(TopologyError) as refused:
        load_document(document, "manifest.json")
    assert str(refused.value).split("\n") == [
        "manifest.json: hosts.b1.nic.tx_rate: 5 has no unit; allowed: a number and kbit, mbit or gbit; did you mean 5mbit?",
        "manifest.json: hosts.b2.node_id: r9 is not a node id; allowed: a whole number from 0 to 2147483647",
    ]


def test_python_is_held_to_the_same_rules() -> None:
    nic = Nic.symmetric(400_000_000)
    hosts = (
        DeclaredHost("b1", Role.BROKER, "r9", Nic(0, 10**12, 0, 0), 1, "4.3", {"node.id": "3"}),
        DeclaredHost("b1", Role.CLIENT, "r1", nic, 1, "4.3.1"),
    )
    with pytest.raises(TopologyError) as refused:
        Topology("T", hosts)
    assert [problem.field for problem in refused.value.problems] == [
        "name",
        "hosts.b1.rack",
        "hosts.b1.nic.tx_rate",
        "hosts.b1.nic.rx_rate",
        "hosts.b1.kafka.version",
        "hosts.b1.kafka.properties[node.id]",
        "hosts.b1",
        "hosts.b1.node_id",
        "hosts.b1.kafka",
        "hosts.b1.node_id",
        "hosts",
    ]
    assert "topology 'T': hosts.b1: two hosts are called b1; allowed: each name once" in str(refused.value)


def test_a_cluster_of_automq_names_no_kafka_anywhere() -> None:
    text = (
        changed("kafka: {version: 4.3.1}", "software: {automq: {}}\nremote_storage: {}")
        .replace("hosts:\n", "roles: {broker: {kafka: {path: k}}}\nhosts:\n  s1: {role: objectstore, rack: r1}\n")
        .replace("rack: r1}\n  b2", "rack: r1, kafka: {version: 4.3.1}}\n  b2")
    )
    not_apache = "this cluster is AutoMQ's (software.automq); allowed: no version or path of Apache Kafka with it"
    assert refusal(text) == [
        "t.yaml:4:17: remote_storage: AutoMQ has all its data on the object store; allowed: software.automq or remote_storage",
        f"t.yaml:6:32: roles.broker.kafka.path: {not_apache}",
        f"t.yaml:9:47: hosts.b1.kafka.version: {not_apache}",
    ]


def test_python_is_held_to_the_same_rules_for_object_stores() -> None:
    nic = Nic.symmetric(400_000_000)
    hosts = (
        DeclaredHost("b1", Role.BOTH, "r1", nic, 1, "4.3.1"),
        DeclaredHost("s1", Role.OBJECTSTORE, "r1", nic, 2, "4.3.1", disk=Disk(10**9)),
    )
    with pytest.raises(TopologyError) as refused:
        Topology("t", hosts, automq=AutomqSource("a", "b"), remote_storage=RemoteStorage())
    assert [problem.field for problem in refused.value.problems] == [
        "hosts.b1.kafka.version",
        "hosts.s1.node_id",
        "hosts.s1.kafka",
        "remote_storage",
        "software.automq",
    ]
    with pytest.raises(TopologyError, match="no host is an object store"):
        Topology("t", hosts[:1], remote_storage=RemoteStorage())


def test_a_file_is_named_as_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(changed("400mbit", "400"))
    with pytest.raises(TopologyError) as refused:
        load(str(file))
    assert str(refused.value).startswith(f"{file}:4:24: defaults.nic.rate: 400 has no unit")


def test_python_is_held_to_the_same_rules_for_links_and_disks() -> None:
    bad = Impairment(delay_us=1, jitter_us=2, loss_ppm=600_000)
    nic, second = Nic.symmetric(400_000_000), Nic(10**9, 10**9, 20_000, 20_000, "data0", use=NicUse.REPLICATION)
    hosts = (
        DeclaredHost("b1", Role.BOTH, "r1", nic, 1, "4.3.1", more_nics=(second,), disk=Disk(1, 1)),
        DeclaredHost("l1", Role.CLIENT, "r1", nic, disk=Disk(10**9)),
    )
    with pytest.raises(TopologyError) as refused:
        Topology("t", hosts, uplinks={"r9": Link(0, 10**9, 20_000, 20_000, rx_impairment=bad)})
    assert [problem.field for problem in refused.value.problems] == [
        "racks.r9",
        "racks.r9.uplink.tx_rate",
        "racks.r9.uplink.rx_jitter",
        "racks.r9.uplink.rx_loss",
        "hosts.b1.nics.data0",
        "hosts.b1.disk.size",
        "hosts.b1.disk.bandwidth",
        "hosts.l1.disk",
    ]


def test_too_many_hosts_for_several_nics() -> None:
    brokers = "".join(f"  b{n}: {{role: both}}\n" for n in range(61))
    text = (
        "name: t\nkafka: {version: 4.3.1}\ndefaults: {nics: {a: {rate: 1mbit}, b: {rate: 1mbit}}}\nhosts:\n" + brokers
    )
    assert refusal(text) == ["t.yaml:4:1: hosts: 61 hosts, and some have several NICs; allowed: 60 at most then"]
