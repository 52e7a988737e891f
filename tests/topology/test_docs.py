"""docs/topologies.md tells the truth: its examples load, and its errors are the ones that are printed."""

import re
from pathlib import Path

import pytest

from testbed.topology import TopologyError, loads
from testbed.topology.rules import OWNED_PREFIXES, OWNED_PROPERTIES
from testbed.topology.surface import HostForm, KafkaForm, NicForm, TopologyForm

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "topologies.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_its_examples_load() -> None:
    small, full = (loads(block) for block in blocks("yaml"))
    assert (small.name, full.name) == ("small", "every-field")
    fetchers = {host.name: host.properties.get("num.replica.fetchers") for host in full.hosts}
    assert fetchers == {"c1": "1", "b1": "2", "b2": "4", "load": None}
    assert [host.node_id for host in full.hosts] == [100, 1, 2, None]


def test_its_errors_look_like_this() -> None:
    (wrong,) = blocks("yaml wrong")
    (told,) = blocks("text")
    with pytest.raises(TopologyError) as refused:
        loads(wrong, "wrong.yaml")
    assert told == f"{refused.value}\n"


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
    ):
        for field in form.model_fields:
            said = {"defaults": "defaults.nic", "roles": "roles.ROLE.nic", "hosts": "hosts.NAME"}.get(field, field)
            assert f"`{prefix}{said}`" in TEXT, f"{prefix}{field}"
    for name in (*OWNED_PROPERTIES, *(f"{prefix}*" for prefix in OWNED_PREFIXES)):
        assert f"`{name}`" in TEXT, name
