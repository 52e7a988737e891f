"""The published JSON schema of incidents: it is the committed one, and agrees with what is read."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from testbed.form import schema_text
from testbed.incidents.__main__ import FILE, json_schema
from tests.incidents.files import SMALL

ROOT = Path(__file__).parents[2]
READY = sorted((ROOT / "topologies" / "incidents").glob("*.yaml"))
VALIDATOR = Draft202012Validator(json_schema())


def test_the_committed_file_is_current():
    hint = f"run: python -m testbed.incidents > {FILE}"
    assert (ROOT / FILE).read_text(encoding="utf-8") == schema_text(json_schema()), hint


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
        ("    at: 2s\n", "    at: {time: 2s, isr: {below: 1}}\n"),
        ("{move: {topics", "{mov: {topics"),
        ("broker_kill: {host: b3}", "broker_kill: {hst: b3}"),
        ("move_done: {within: 40s}", "move_done: {}"),
        ("optional: true", "optional: 1"),
        ("partitions: 4", "partitions: 0"),
    ],
)
def test_mistakes_are_underlined(right, wrong):
    assert list(VALIDATOR.iter_errors(yaml.safe_load(SMALL.replace(right, wrong, 1))))


def test_every_field_is_described():
    schema = json_schema()
    for name, form in (("", schema), *schema["$defs"].items()):
        assert form["description"], name
        mapping = form if "properties" in form else form.get("anyOf", [{}, {}])[1]
        for field, described in mapping.get("properties", {}).items():
            assert described.get("description"), (name, field)
    assert json.dumps(schema).count('"type": "null"') == 0
