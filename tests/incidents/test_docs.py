"""docs/incidents.md is current: its example loads, and it names every field, action and expectation.

docs/incident-library.md has every ready incident.
"""

import re
from pathlib import Path

from results.criteria.expectations import EXPECTATIONS
from testbed.incidents.actions import ACTIONS, InjectFault
from testbed.incidents.model import EntryForm, FixedForm, IncidentForm, LoadForm, TopicState
from testbed.incidents.read import find, loads, ready_incidents
from testbed.incidents.triggers import TriggerForm

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "incidents.md").read_text(encoding="utf-8")
LIBRARY = (ROOT / "docs" / "incident-library.md").read_text(encoding="utf-8")


def test_its_example_loads():
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    file = loads(block, "example.yaml")
    assert [entry.name for entry in file.fixed.entries] == ["move", "lost", "back", "entry 5", "clean-up"]
    assert file.fixed.parameters == {"throttle": "6MB/s"}
    assert file.broken.state.throttle is not None


def test_the_library_has_every_ready_incident_with_what_it_fails():
    for name in ready_incidents():
        fails = ", ".join(f"`{each}`" for each in find(name).broken.expected_failures)
        assert re.search(rf"^\| \[`{name}`\]\(#{name}\) \|.*\| {fails} \|$", LIBRARY, re.MULTILINE), name
        assert f"\n### {name}\n" in LIBRARY, name


def test_it_names_every_field():
    for form in (IncidentForm, TopicState, LoadForm, EntryForm, FixedForm):
        for field in form.model_fields:
            assert re.search(rf"`(?:\w+\.)*{field}[`:.,]|\b{field}: ", TEXT), field


def test_it_names_every_action_and_expectation_with_its_parameters():
    own = {key: kind for key, kind in ACTIONS.items() if not issubclass(kind, InjectFault)}
    for key, kind in {**own, **EXPECTATIONS}.items():
        (row,) = [line for line in TEXT.splitlines() if line.startswith("| ") and f"`{key}`" in line.split(" | ")[0]]
        for field in kind.model_fields:
            assert f"`{field}`" in row, (key, field)
    for kind in EXPECTATIONS.values():
        assert f"`{kind.name()}`" in TEXT, kind
    for trigger in TriggerForm.model_fields:
        assert re.search(rf"[`{{]{trigger}\b", TEXT), trigger
