"""The published JSON schema of incidents: it is the committed one, and agrees with what is read."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from testbed.incidents.schema import FILE, json_schema, json_schema_text
from tests.incidents.files import SMALL

ROOT = Path(__file__).parents[2]
READY = sorted((ROOT / "topologies" / "incidents").glob("*.yaml"))
VALIDATOR = Draft202012Validator(json_schema())


def test_the_committed_file_is_current():
    hint = f"run: python -m testbed.incidents > {FILE}"
    assert (ROOT / FILE).read_text(encoding="utf-8") == json_schema_text(), hint


def test_it_is_a_schema():
    Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("text", [SMALL, *(path.read_text() for path in READY)])
def test_good_files_pass(text):
    VALIDATOR.validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("name: small", "name: Not A Name"),
        ("lasts: 60s", "lasts: 60"),
        ("lasts: 60s", "last: 60s"),
        ("size: 4MB", "size: 4MB/s"),
        ("produce: 1MB/s", "produce: 1MB"),
        ("    at: 2s\n", "    at: 2s\n    when: isr < 1\n"),
        ("optional: true", "optional: 1"),
        ("fails: [throttle-removed]", "fails: []"),
        ("partitions: 4", "partitions: 0"),
    ],
)
def test_mistakes_are_underlined(right, wrong):
    assert list(VALIDATOR.iter_errors(yaml.safe_load(SMALL.replace(right, wrong, 1))))


def test_every_field_is_described():
    schema = json_schema()
    for form in (schema, *schema["$defs"].values()):
        assert form["description"]
        for name, field in form["properties"].items():
            assert field.get("description"), name
    assert json.dumps(schema).count('"type": "null"') == 0
