# ruff: noqa: E501 - messages are written as they are printed
"""Good files: inheritance, node ids, racks, derived bursts, and the round trip through a document."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

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
    default_burst_bytes,
    load,
    load_document,
    loads,
)

READY = sorted((Path(__file__).parents[2] / "topologies").glob("*.yaml"))

FULL = """
name: full
description: Every field there is.
racks: [r1, r2]
kafka:
  version: 4.3.1
  properties: {num.replica.fetchers: 1, auto.leader.rebalance.enable: false, a.ratio: 0.50}
defaults:
  nic: {rate: 400mbit}
roles:
  broker:
    nic: {burst: 100kB}
    kafka: {properties: {num.replica.fetchers: 2, b.text: "x y"}}
  client:
    nic: {rate: 1gbit, name: load0}
hosts:
  c1: {role: controller, rack: r1}
  b1: {role: broker, rack: r2, node_id: 2}
  b2:
    role: broker
    rack: r1
    nic: {tx_rate: 100mbit, tx_burst: 20KiB}
    kafka: {version: 3.9.2, properties: {num.replica.fetchers: 4}}
  l1: {role: client, rack: r2}
"""


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_a_ready_topology_has_the_name_of_its_file_and_hosts_in_each_rack(path: Path) -> None:
    topology = load(path)
    assert (topology.name, topology.source) == (path.stem, str(path))
    assert {host.rack for host in topology.hosts} == set(topology.racks)


def test_uplinks() -> None:
    topology = load(READY[-1].with_name("two-racks-narrow-uplink.yaml"))
    assert topology.uplinks == {rack: Link.symmetric(100_000_000) for rack in ("left", "right")}
    text = FULL.replace(
        "[r1, r2]", "{r1: {}, r2: {uplink: {tx_rate: 50mbit, rx_rate: 1gbit, rx_burst: 64KiB, delay: 5ms}}}"
    )
    (rack,) = loads(text).uplinks
    assert rack == "r2"
    assert loads(text).uplinks["r2"] == Link(50_000_000, 10**9, 16_384, 65_536, tx_impairment=Impairment(delay_us=5000))


def test_delay_jitter_and_loss_are_inherited_one_by_one() -> None:
    text = FULL.replace("rate: 400mbit", "rate: 400mbit, delay: 20ms, jitter: 1ms, loss: 0.1%, rx_delay: 3ms")
    text = text.replace("tx_rate: 100mbit", "tx_rate: 100mbit, delay: 2.5ms, loss: 50ppm, rx_loss: 1%")
    topology = loads(text)
    assert topology.host("b1").nic.tx_impairment == Impairment(20_000, 1_000, 1_000)
    assert topology.host("b1").nic.rx_impairment == Impairment(3_000)
    assert topology.host("b2").nic.tx_impairment == Impairment(2_500, 1_000, 50)
    assert topology.host("b2").nic.rx_impairment == Impairment(3_000, 0, 10_000)


SEVERAL = """
name: several
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}, disk: {size: 2GB}}
roles:
  both: {nics: {data0: {}, repl0: {rate: 1gbit, use: replication}}}
hosts:
  b1: {role: both}
  b2: {role: both, nics: {front: {tx_rate: 100mbit}, back: {rate: 2gbit, use: replication}}, disk: {bandwidth: 50MB/s}}
  l1: {role: client, nic: {name: load0}}
"""


def test_several_nics_and_disks() -> None:
    b1, b2, l1 = loads(SEVERAL).hosts
    assert [(nic.name, nic.use, nic.tx_bps) for nic in b1.nics] == [
        ("data0", NicUse.DATA, 400_000_000),
        ("repl0", NicUse.REPLICATION, 10**9),
    ]
    assert [(nic.name, nic.tx_bps, nic.rx_bps) for nic in b2.nics] == [
        ("front", 100_000_000, 400_000_000),
        ("back", 2 * 10**9, 2 * 10**9),
    ]
    assert b1.nic is b1.nics[0] and b1.nic_for(NicUse.REPLICATION) == (1, b1.nics[1])
    assert l1.nics == (Nic(400_000_000, 400_000_000, 51_200, 51_200, "load0"),)
    assert (b1.disk, b2.disk, l1.disk) == (Disk(2 * 10**9), Disk(2 * 10**9, 50_000_000), None)


STORED = """
name: stored
kafka: {version: 4.3.1, properties: {num.io.threads: 2}}
remote_storage: {}
defaults: {nic: {rate: 400mbit}}
roles: {objectstore: {nic: {rate: 1gbit}, disk: {size: 2GB}}}
hosts:
  b1: {role: both}
  s1: {role: objectstore}
  s2: {role: objectstore, disk: {size: 3GB}}
  l1: {role: client}
"""


def test_object_stores() -> None:
    topology = loads(STORED)
    assert topology.remote_storage == RemoteStorage()
    _b1, s1, s2, l1 = topology.hosts
    assert topology.objectstores == (s1, s2) and topology.clients == (l1,)
    assert (s1.node_id, s1.kafka_version, dict(s1.properties)) == (None, None, {})
    assert (s1.disk, s2.disk, s1.nic.tx_bps) == (Disk(2 * 10**9), Disk(3 * 10**9), 10**9)
    assert not (s1.is_broker or s1.is_controller)
    assert [host.kafka_version for host in topology.with_kafka_version("4.2.0").hosts] == ["4.2.0", None, None, None]


def test_what_is_not_there_is_no_part_of_the_document() -> None:
    """Else the digests of all topologies there are would have changed with these words."""
    assert not {"remote_storage", "software"} & loads(FULL).to_document().keys()
    assert loads(STORED).digest() != loads(STORED.replace("remote_storage: {}\n", "")).digest()


def test_jars_and_automq_count_from_the_files_folder(tmp_path: Path) -> None:
    file = tmp_path / "here" / "t.yaml"
    file.parent.mkdir()
    file.write_text(STORED.replace("storage: {}", "storage: {manager: ../jars}"))
    assert load(file).remote_storage == RemoteStorage(str(tmp_path / "jars"))
    file.write_text(AUTOMQ.replace("image: automq:1", "path: automq"))
    assert load(file).automq == AutomqSource(path=str(file.parent / "automq"))


AUTOMQ = STORED.replace("version: 4.3.1, ", "").replace("remote_storage: {}", "software: {automq: {image: automq:1}}")


def test_automq() -> None:
    topology = loads(AUTOMQ)
    assert topology.automq == AutomqSource(image="automq:1") and topology.remote_storage is None
    b1 = topology.host("b1")
    assert (b1.node_id, b1.kafka_version, dict(b1.properties)) == (1, None, {"num.io.threads": "2"})
    assert loads(AUTOMQ.replace("{image: automq:1}", "{}")).automq == AutomqSource()
    apache = topology.with_kafka_version("4.3.1")
    assert (apache.automq, apache.host("b1").kafka_version) == (None, "4.3.1")


def test_inheritance() -> None:
    topology = loads(FULL)
    assert topology.racks == ("r1", "r2")
    c1, b1, b2, l1 = topology.hosts

    assert (c1.role, c1.rack, c1.kafka_version) == (Role.CONTROLLER, "r1", "4.3.1")
    assert c1.properties == {"num.replica.fetchers": "1", "auto.leader.rebalance.enable": "false", "a.ratio": "0.50"}
    assert c1.nic == Nic(400_000_000, 400_000_000, 51_200, 51_200)

    assert b1.properties["num.replica.fetchers"] == "2" and b1.properties["b.text"] == "x y"
    assert b1.nic == Nic(400_000_000, 400_000_000, 100_000, 100_000)

    assert (b2.kafka_version, b2.properties["num.replica.fetchers"]) == ("3.9.2", "4")
    assert b2.nic == Nic(100_000_000, 400_000_000, 20_480, 100_000)

    assert (l1.node_id, l1.kafka_version, dict(l1.properties)) == (None, None, {})
    assert l1.nic == Nic(10**9, 10**9, 128_000, 128_000, name="load0")


def test_who_is_what() -> None:
    topology = loads(FULL)
    assert [host.name for host in topology.brokers] == ["b1", "b2"]
    assert [host.name for host in topology.controllers] == ["c1"]
    assert [host.name for host in topology.clients] == ["l1"]
    assert topology.host("b2") is topology.hosts[2]
    with pytest.raises(KeyError, match="no host 'b9' in full; there are c1, b1, b2, l1"):
        topology.host("b9")


def test_node_ids_are_counted_past_given_ones() -> None:
    """c1 gets 1; 2 is b1's own; b2 gets 3."""
    assert [host.node_id for host in loads(FULL).hosts] == [1, 2, 3, None]


def test_node_id_zero_and_ids_given_later() -> None:
    text = "{name: t, kafka: {version: 4.3.1}, defaults: {nic: {rate: 1mbit}}, hosts: {a: {role: both}, b: {role: broker, node_id: 1}, c: {role: broker, node_id: 0}}}"
    assert [host.node_id for host in loads(text).hosts] == [2, 1, 0]


@pytest.mark.parametrize(
    ("rate_bps", "burst_bytes"),
    [
        (8_000, 16_384),
        (50_000_000, 16_384),
        (100_000_000, 16_384),
        (400_000_000, 51_200),
        (10**9, 128_000),
        (10**10, 1_280_000),
    ],
)
def test_the_burst_follows_from_the_rate(rate_bps: int, burst_bytes: int) -> None:
    assert default_burst_bytes(rate_bps) == burst_bytes


@pytest.mark.parametrize("text", [FULL, SEVERAL, STORED, AUTOMQ, *(path.read_text() for path in READY)])
def test_a_document_round_trips(text: str) -> None:
    topology = loads(text)
    document = json.loads(json.dumps(topology.to_document()))
    again = load_document(document)
    assert again == topology
    assert again.to_document() == topology.to_document()
    assert again.digest() == topology.digest()
    assert len(topology.digest()) == 64


def test_the_digest_is_of_the_meaning() -> None:
    one = loads(FULL)
    same = loads("# a comment\n" + FULL.replace("rate: 400mbit", "tx_rate: 0.4gbit, rx_rate: 400Mbit/s"), "elsewhere")
    other = loads(FULL.replace("rate: 400mbit", "rate: 401mbit"))
    assert same == one and same.digest() == one.digest()
    assert other.digest() != one.digest()


def test_another_kafka_version() -> None:
    topology = loads(FULL).with_kafka_version("4.2.0")
    assert [host.kafka_version for host in topology.hosts] == ["4.2.0", "4.2.0", "4.2.0", None]


def test_a_model_cannot_be_changed() -> None:
    topology = loads(FULL)
    with pytest.raises(AttributeError):
        topology.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        topology.hosts[0].properties["a"] = "b"  # type: ignore[index]
    assert len(set(topology.hosts)) == 4


def test_the_same_in_python() -> None:
    nic = Nic.symmetric(400_000_000)
    hosts = (
        DeclaredHost("b1", Role.BOTH, "r1", nic, 1, "4.3.1"),
        DeclaredHost("b2", Role.BROKER, "r1", nic, 2, "4.3.1"),
    )
    built = Topology("two-brokers", hosts)
    read = load(READY[-1].with_name("two-brokers.yaml"))
    assert built.hosts == read.hosts and built.racks == read.racks


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
        lambda text: ("---\n" + text + "...\n").encode(),
        lambda text: text.replace("full", '"full"').encode(),
    ],
    ids=["crlf", "bom", "bom and crlf", "document marks", "quotes"],
)
def test_ways_to_write_the_same(change: Callable[[str], bytes], tmp_path: Path) -> None:
    file = tmp_path / "full.yaml"
    file.write_bytes(change(FULL))
    assert load(file) == loads(FULL)


def test_aliases_are_fine_in_moderation() -> None:
    text = FULL.replace("nic: {rate: 400mbit}", "nic: &nic {rate: 400mbit}").replace("nic: {burst: 100kB}", "nic: *nic")
    assert loads(text).host("b1").nic == Nic.symmetric(400_000_000)


def test_words_that_yaml_once_took_for_booleans_are_names() -> None:
    text = "{name: 'no', racks: [no, y], kafka: {version: 4.3.1}, defaults: {nic: {rate: 1mbit}}, hosts: {on: {role: both, rack: y}}}"
    assert loads(text).host("on").rack == "y"
