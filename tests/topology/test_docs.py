"""docs/topologies.md tells the truth: its examples load, and its errors are the ones that are printed."""

import re
from pathlib import Path

import pytest

from testbed.provision.machine import MachineLacks, Need, require_machine
from testbed.topology import AutomqSource, Disk, NicUse, RemoteStorage, TopologyError, loads
from testbed.topology.file_form import (
    AutomqForm,
    DiskForm,
    HostForm,
    KafkaForm,
    NicForm,
    RackForm,
    RemoteStorageForm,
    TopologyForm,
)
from testbed.topology.find import ready
from testbed.topology.rules import OWNED_PREFIXES, OWNED_PROPERTIES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "topologies.md").read_text(encoding="utf-8")

SAID = {"defaults": "defaults.nic", "roles": "roles.ROLE.nic", "hosts": "hosts.NAME", "software": "software.automq"}


DOUBLE = "  b3: {role: broker, rack: r2}\n"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_its_examples_load() -> None:
    small, full, narrow, two_nics, tiered, automq = (loads(block) for block in blocks("yaml"))
    assert (small.name, full.name, narrow.name, two_nics.name) == ("small", "every-field", "narrow", "two-nics")
    assert (tiered.remote_storage, tiered.automq) == (RemoteStorage(), None)
    assert (automq.remote_storage, automq.automq) == (None, AutomqSource(str((Path.cwd() / "../automq").resolve())))
    assert [host.name for host in tiered.objectstores] == [host.name for host in automq.objectstores] == ["s1"]
    assert full.host("b2").nics[1].use is NicUse.REPLICATION
    assert (full.host("b1").disk, full.host("b2").disk) == (Disk(20 * 10**9, 200_000_000), Disk(2 * 10**9, 200_000_000))
    assert full.host("c1").nics == (full.host("c1").nic,)
    fetchers = {host.name: host.properties.get("num.replica.fetchers") for host in full.hosts}
    assert fetchers == {"c1": "1", "b1": "2", "b2": "4", "load": None}
    assert [host.node_id for host in full.hosts] == [100, 1, 2, None]


def test_its_errors_look_like_this() -> None:
    (wrong,) = blocks("yaml wrong")
    (told,) = blocks("text")
    with pytest.raises(TopologyError) as refused:
        loads(wrong, "wrong.yaml")
    assert told == f"{refused.value}\n"
    (rules,) = blocks("text rules")
    right = wrong.replace("4.3,", "4.3.1,").replace("{log.dirs: /data}", "{}").replace("400", "400mbit")
    right = right.replace("bth", "both").replace("10MB/s, brust", "80mbit, burst").replace(DOUBLE, "")
    with pytest.raises(TopologyError) as refused:
        loads(right, "wrong.yaml")
    assert rules == f"{refused.value}\n"


def test_its_refusal_looks_like_this() -> None:
    (told,) = blocks("text refusal")
    text = (
        blocks("yaml")[0]
        .replace("name: small", "name: far")
        .replace("role: broker", "role: broker, nic: {delay: 20ms}")
    )
    without = (
        "the kernel has no netem (Specified qdisc kind is unknown); `modprobe sch_netem` loads it where it was built"
    )
    with pytest.raises(MachineLacks) as refused:
        require_machine(loads(text), {Need.NETEM: lambda: without})
    assert told == f"{refused.value}\n"


def test_its_ready_topologies_are_those_there_are() -> None:
    for name in ready():
        assert f"`{name}`" in TEXT, name


def test_its_python_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = blocks("python")
    exec(compile(code, "docs/topologies.md", "exec"), {})
    assert capsys.readouterr().out == "400000000 ['b1', 'b2']\n"


def test_it_names_every_field_and_every_refused_property() -> None:
    for form, prefix in (
        (TopologyForm, ""),
        (HostForm, "hosts.NAME."),
        (NicForm, "nic."),
        (KafkaForm, "kafka."),
        (RackForm, "racks.RACK."),
        (DiskForm, "disk."),
        (RemoteStorageForm, "remote_storage."),
        (AutomqForm, "software.automq."),
    ):
        for field in form.model_fields:
            assert f"`{prefix}{SAID.get(field, field)}`" in TEXT, f"{prefix}{field}"
    for name in (*OWNED_PROPERTIES, *(f"{prefix}*" for prefix in OWNED_PREFIXES)):
        assert f"`{name}`" in TEXT, name
