"""The JSON schema of topology files, for editors: names, roles, patterns and a description of every field."""

import json
from typing import Any

from testbed.topology.model import Role
from testbed.topology.rules import HOST_NAME
from testbed.topology.surface import TopologyForm

FILE = "topologies/topology.schema.json"


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) that `topologies/topology.schema.json` holds."""
    schema: dict[str, Any] = _for_editors(TopologyForm.model_json_schema())
    hosts = schema["properties"]["hosts"]
    hosts["propertyNames"] = {"pattern": HOST_NAME}
    forms = schema["$defs"]
    for link in ("NicForm", "UplinkForm"):
        forms[link]["allOf"] = [
            {"not": {"required": [whole, f"{side}_{whole}"]}} for whole in ("rate", "burst") for side in ("tx", "rx")
        ]
    for level in ("HostForm", "KafkaRoleForm", "ClientRoleForm", "ObjectStoreRoleForm", "DefaultsForm"):
        forms[level]["not"] = {"required": ["nic", "nics"]}
    forms["HostForm"]["allOf"] = [_without(role) for role in Role if not role.runs_kafka]
    forms["AutomqForm"]["not"] = {"required": ["path", "image"]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _without(role: Role) -> dict[str, Any]:
    """Fields that a host of this role may not have."""
    fields = ["kafka", "node_id", *([] if role.stores_data else ["disk"])]
    has_role = {"properties": {"role": {"const": role.value}}, "required": ["role"]}
    return {"if": has_role, "then": {"properties": dict.fromkeys(fields, False)}}


def json_schema_text() -> str:
    """The text of the committed file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _for_editors(part: Any) -> Any:
    """Without "or null" and its default: in a file a field is left out, never empty."""
    if isinstance(part, list):
        return [_for_editors(item) for item in part]
    if not isinstance(part, dict):
        return part
    kept = {key: _for_editors(value) for key, value in part.items() if not (key == "default" and value is None)}
    alternatives = kept.get("anyOf")
    if isinstance(alternatives, list) and {"type": "null"} in alternatives:
        (only,) = [item for item in alternatives if item != {"type": "null"}]
        del kept["anyOf"]
        kept = {**only, **kept}
    if "patternProperties" in kept:
        kept["additionalProperties"] = False
    if "type" in kept or "$ref" in kept or "oneOf" in kept:
        kept.pop("title", None)
    return kept
