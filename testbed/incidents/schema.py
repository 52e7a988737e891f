"""The JSON schema of incident files, for editors."""

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from testbed.incidents.surface import NAME, PARAMETER, TOPIC, IncidentForm, StateForm

FILE = "topologies/incidents/incident.schema.json"


class _ForEditors(GenerateJsonSchema):
    """Without defaults of nothing: in a file a field is left out, never empty."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        made = super().default_schema(schema)
        if made.get("default") in (None, {}, []):
            made.pop("default", None)
        return made


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) that `topologies/incidents/incident.schema.json` holds."""
    schema = IncidentForm.model_json_schema(schema_generator=_ForEditors)
    schema["properties"]["parameters"]["propertyNames"] = {"pattern": PARAMETER}
    topics = schema["$defs"]["StateForm"]["properties"]["topics"]
    topics["propertyNames"] = {"pattern": TOPIC}
    schema["$defs"]["RemedyForm"]["properties"]["replace"]["propertyNames"] = {"pattern": NAME}
    entry = schema["$defs"]["EntryForm"]
    entry["anyOf"] = [{"required": ["do"]}, {"required": ["expect"]}]
    pairs = (("at", "when"), ("at", "after"), ("when", "after"))
    entry["allOf"] = [{"not": {"required": list(pair)}} for pair in pairs]
    # Pydantic drops the description of a field that is a form of its own.
    for form in (IncidentForm, StateForm):
        properties = schema["properties"] if form is IncidentForm else schema["$defs"]["StateForm"]["properties"]
        for name, field in form.model_fields.items():
            properties[name].setdefault("description", field.description)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def json_schema_text() -> str:
    """The text of the committed file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
