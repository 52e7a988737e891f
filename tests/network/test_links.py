import json

import pytest

from testbed.network import apply
from testbed.network.apply import FABRIC, MACHINE, compare_links, link_ends, remove_links
from testbed.network.fabric import driver_device
from testbed.topology import loads

TWO = loads(
    "{name: two, kafka: {version: 4.3.1}, racks: [r1, r2],"
    " defaults: {nics: {data0: {rate: 1mbit}, repl0: {rate: 2mbit, use: replication}}},"
    " hosts: {b1: {role: both, rack: r1}, b2: {role: broker, rack: r2}}}"
)


def as_it_should_be():
    """What `ip` says everywhere when all links are up."""
    found = {}
    for end in link_ends("t", TWO):
        found.setdefault(end.host, []).append({"ifname": end.device, "flags": ["BROADCAST", "UP"]})
    return found


def test_every_device_of_the_fabric_and_of_the_hosts_is_looked_at():
    assert {host: {link["ifname"] for link in links} for host, links in as_it_should_be().items()} == {
        FABRIC: {"core", "driver", *(f"{kind}{rack}" for kind in ("rack", "up", "dn", "port") for rack in (0, 1))}
        | {"port0n1", "port1n1"},
        MACHINE: {driver_device("t")},
        "b1": {"data0", "repl0"},
        "b2": {"data0", "repl0"},
    }
    assert compare_links("t", TWO, as_it_should_be()) == ()


@pytest.mark.parametrize(
    ("host", "device", "told"),
    [
        ("b2", "repl0", "b2 repl0 is down (repl0 on b2)"),
        (FABRIC, "port1n1", "the switch's end of b2 repl0 is down (port1n1 in the fabric)"),
        (FABRIC, "dn1", "rack r2's uplink is down (dn1 in the fabric)"),
        (FABRIC, "rack0", "the switch of rack r1 is down (rack0 in the fabric)"),
        (MACHINE, driver_device("t"), f"this machine's link is down ({driver_device('t')} on this machine)"),
    ],
)
def test_a_link_that_was_taken_down_is_told_and_where(host, device, told):
    links = as_it_should_be()
    next(link for link in links[host] if link["ifname"] == device)["flags"].remove("UP")
    assert list(compare_links("t", TWO, links)) == [told]
    links[host] = [link for link in links[host] if link["ifname"] != device]
    assert list(compare_links("t", TWO, links)) == [told.replace("is down", "is gone")]


def test_of_a_host_that_does_not_run_nothing_is_said_of_its_own_ends():
    links = as_it_should_be()
    del links["b2"]
    assert compare_links("t", TWO, links) == ()


def test_a_host_with_the_name_of_a_rack_leaves_the_racks_switch(monkeypatch):
    links = [
        {"ifname": name, "ifalias": alias}
        for name, alias in (("rack0", "r1"), ("port0", "r1"), ("port0n1", "r1"), ("port1", "b2"))
    ]
    removed = []
    monkeypatch.setattr(apply, "_run", lambda _place, _command: json.dumps([{"ifname": "core"}, *links]))
    monkeypatch.setattr(apply, "apply", lambda script, _place: removed.append(script.ip))
    remove_links("r1", 1)
    assert removed == [("link del dev port0", "link del dev port0n1")]
