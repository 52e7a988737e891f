"""docs/schema.md has every field of the manifest, every metric of the agent, and every event of a run."""

import dataclasses
import re
from pathlib import Path

import pytest

from results.contract.manifest import Facts, Manifest
from testbed.probes import agent

ROOT = Path(__file__).parents[2]
PAGES = {
    name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("schema", "incidents", "workload")
}
EVERYWHERE = "\n".join(PAGES.values())
EVENT = re.compile(r"""event\(\s*"([a-z]+\.[a-z_]+)\"""")


def events():
    """Return the kinds of events that the code records by a literal name."""
    found = {
        name for path in (ROOT / "testbed").rglob("*.py") for name in EVENT.findall(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 30
    return sorted(found)


@pytest.mark.parametrize("form", [Manifest, Facts])
def test_it_has_every_field(form):
    missing = [each.name for each in dataclasses.fields(form) if f"`{each.name}`" not in PAGES["schema"]]
    assert missing == []


def test_it_has_every_metric_of_the_agent():
    read = {"io.read_bytes", "io.write_bytes", "jvm.stopped", "jvm.cpus", "cpu.throttled.seconds", "agent.late"}
    read |= {"nic.foreign", *agent.PROTOCOLS, "disk.free.bytes", "memory.limited", "memory.killed", "disk.limited"}
    read |= {"s3.answer.seconds"}
    metrics = {*read, *(metric for _mbean, _attribute, metric, _label in agent.asked())}
    for name in sorted({*metrics, *agent.STORE.values()}):
        # Two metrics of one row may share the begin of their names.
        assert re.search(rf"`{re.escape(name)}`|`\.{re.escape(name.rsplit('.', 1)[1])}`", PAGES["schema"]), name


@pytest.mark.parametrize("name", events())
def test_an_event_is_on_a_page(name):
    first, _, last = name.partition(".")
    assert re.search(rf"`{first}\.{last}`|`\.{last}`", EVERYWHERE), name
