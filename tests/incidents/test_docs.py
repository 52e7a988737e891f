"""docs/incidents.md tells the truth: its example loads, and it names every field and every kind of sentence."""

import re
from pathlib import Path

from testbed.incidents.actions import kinds as actions
from testbed.incidents.expectations import kinds as expectations
from testbed.incidents.read import loads, ready_incidents
from testbed.incidents.surface import EntryForm, IncidentForm, LoadForm, RemedyForm, TopicForm
from testbed.incidents.trigger import SIGNALS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "incidents.md").read_text(encoding="utf-8")


def test_its_example_loads():
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    file = loads(block, "example.yaml")
    assert [entry.name for entry in file.remedy.entries] == ["move", "lost", "back", "entry 5", "clean-up"]
    assert file.remedy.parameters == {"throttle": "6MB/s"}
    assert file.faulty.state.throttle is not None


def test_it_names_every_ready_incident_with_what_it_fails():
    for name in ready_incidents():
        fails = ", ".join(f"`{each}`" for each in loads_ready(name).faulty.fails)
        assert re.search(rf"^\| `{name}` \|.*\| {fails} \|$", TEXT, re.MULTILINE), name


def loads_ready(name):
    path = ROOT / "topologies" / "incidents" / f"{name}.yaml"
    return loads(path.read_text(), str(path), None, path.parent)


def test_it_names_every_field():
    for form in (IncidentForm, TopicForm, LoadForm, EntryForm, RemedyForm):
        for field in form.model_fields:
            assert re.search(rf"`(?:\w+\.)*{field}[`:.,]|\b{field}: ", TEXT), field


def test_it_names_every_sentence():
    for kind in expectations():
        assert f"`{kind}`" in TEXT, kind
    plain = TEXT.replace("\\|", "|")
    for kind in (*actions().values(), *expectations().values()):
        form = kind.form.split(" (or")[0]
        assert f"{form}`" in plain or f"{form}," in plain, form
    for signal in SIGNALS:
        assert f"`{signal}" in TEXT, signal
