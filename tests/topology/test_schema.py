"""The published JSON schema: it is the committed one, good files pass, and what editors should underline does not."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from testbed.form import schema_text
from testbed.topology import json_schema, load, load_document

ROOT = Path(__file__).parents[2]
FILE = "topologies/topology.schema.json"
READY = sorted((ROOT / "topologies").glob("*.yaml"))
VALIDATOR = Draft202012Validator(json_schema())


def document(**changes: Any) -> dict[str, Any]:
    return {
        "name": "t",
        "kafka": {"version": "4.3.1"},
        "defaults": {"nic": {"rate": "1mbit"}},
        "hosts": {"b1": {"role": "both"}},
    } | changes


def test_the_committed_file_is_current() -> None:
    hint = f"run: python -m testbed.topology > {FILE}"
    assert (ROOT / FILE).read_text(encoding="utf-8") == schema_text(json_schema()), hint


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_ready_topologies_pass(path: Path) -> None:
    VALIDATOR.validate(yaml.safe_load(path.read_text()))
    VALIDATOR.validate(load(path).to_document())
    assert path.read_text().startswith("# yaml-language-server: $schema=topology.schema.json\n")


def test_a_resolved_document_passes() -> None:
    VALIDATOR.validate(document())
    full = document(
        racks={"r1": {"uplink": {"rate": "1mbit", "delay": "5ms"}}},
        defaults={"nics": {"a": {"rate": "1mbit", "loss": "0.1%"}, "b": {"rate": "1mbit", "use": "replication"}}},
        hosts={"b1": {"role": "both", "disk": {"size": "2GB", "bandwidth": "50MB/s"}}},
    )
    VALIDATOR.validate(full)
    VALIDATOR.validate(load_document(full).to_document())
    stored = document(
        remote_storage={"manager": "/jars"},
        roles={"objectstore": {"disk": {"size": "2GB"}}},
        hosts={"b1": {"role": "both"}, "s1": {"role": "objectstore"}},
    )
    automq = {key: stored[key] for key in ("name", "defaults", "hosts")} | {"software": {"automq": {"image": "a:1"}}}
    for each in (stored, automq):
        VALIDATOR.validate(each)
        VALIDATOR.validate(load_document(each).to_document())


@pytest.mark.parametrize(
    "wrong",
    [
        document(hots={}),
        document(name="Not A Name"),
        document(hosts={}),
        document(hosts={"B1": {"role": "both"}}),
        document(hosts={"b1": {"role": "bth"}}),
        document(hosts={"b1": {}}),
        document(hosts={"b1": {"role": "client", "kafka": {"version": "4.3.1"}}}),
        document(hosts={"b1": {"role": "client", "node_id": 1}}),
        document(hosts={"b1": {"role": "both", "node_id": -1}}),
        document(defaults={"nic": {"rate": 400}}),
        document(defaults={"nic": {"rate": "400"}}),
        document(defaults={"nic": {"rate": "50MB/s"}}),
        document(defaults={"nic": {"rate": "1mbit", "tx_rate": "1mbit"}}),
        document(defaults={"nic": {"rate": None}}),
        document(defaults={"nic": {"rate": "1mbit", "burst": 1000}}),
        document(defaults={"nic": {"rate": "1mbit", "delay": 20}}),
        document(defaults={"nic": {"rate": "1mbit", "loss": "0.1"}}),
        document(defaults={"nic": {"rate": "1mbit"}, "nics": {"data0": {}}}),
        document(defaults={"nics": {"data0": {"rate": "1mbit", "use": "clients"}}}),
        document(defaults={"nics": {"DATA": {"rate": "1mbit"}}}),
        document(defaults={"nic": {"rate": "1mbit"}, "disk": {"size": "2GB/s"}}),
        document(hosts={"b1": {"role": "objectstor"}}),
        document(hosts={"s1": {"role": "objectstore", "kafka": {"version": "4.3.1"}}}),
        document(hosts={"s1": {"role": "objectstore", "node_id": 1}}),
        document(roles={"objectstore": {"kafka": {"version": "4.3.1"}}}),
        document(roles={"objectstore": {"nic": {}, "nics": {"data0": {}}}}),
        document(remote_storage={"manager": ""}),
        document(remote_storage=True),
        document(software={}),
        document(software={"kafka": {}}),
        document(software={"automq": {"path": "a", "image": "b"}}),
        document(software={"automq": {"image": "a b"}}),
        document(hosts={"b1": {"role": "client", "disk": {"size": "1GB"}}}),
        document(racks={"R1": {}}),
        document(racks={"r1": {"uplink": {"rate": "1mbit", "name": "up"}}}),
        document(racks={"r1": {"uplink": {"rate": "1mbit", "tx_rate": "1mbit"}}}),
        document(racks={}),
        document(kafka={"version": 4.3}),
        document(kafka={"version": "4.3"}),
        document(kafka={"version": "4.3.1", "properties": {"node.id": 1}}),
        document(kafka={"version": "4.3.1", "properties": {"controller.quorum.voters": "1@b1:9093"}}),
        document(kafka={"version": "4.3.1", "properties": {"a": ["b"]}}),
    ],
)
def test_mistakes_are_underlined(wrong: dict[str, Any]) -> None:
    assert list(VALIDATOR.iter_errors(wrong))


def test_every_field_is_described() -> None:
    schema = json_schema()
    for form in (schema, *schema["$defs"].values()):
        assert form["description"]
        for name, field in form["properties"].items():
            assert field.get("description"), name


def test_editors_can_complete() -> None:
    forms = json_schema()["$defs"]
    assert forms["HostForm"]["properties"]["role"]["enum"] == ["broker", "controller", "both", "client", "objectstore"]
    names = forms["KafkaForm"]["properties"]["properties"]["properties"]
    assert {"num.replica.fetchers", "replica.fetch.response.max.bytes", "min.insync.replicas"} <= set(names)
    assert all(entry["description"] for entry in names.values())
    assert "examples" in forms["NicForm"]["properties"]["rate"]
