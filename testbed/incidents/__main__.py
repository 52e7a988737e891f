"""The JSON schema of incident files, for editors.

Run `python -m testbed.incidents > topologies/incidents/incident.schema.json` after a change of the form.
"""

from typing import Any

from testbed.form import editor_schema, schema_text
from testbed.incidents.forms import NAME, PARAMETER, TOPIC
from testbed.incidents.model import ClusterState, EntryForm, IncidentForm, KnownAction, KnownExpectation
from testbed.incidents.triggers import TriggerForm

FILE = "topologies/incidents/incident.schema.json"


def json_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) in `topologies/incidents/incident.schema.json`."""
    schema = editor_schema(IncidentForm)
    forms = schema["$defs"]
    schema["properties"]["parameters"]["propertyNames"] = {"pattern": PARAMETER}
    forms["ClusterState"]["properties"]["topics"]["propertyNames"] = {"pattern": TOPIC}
    forms["FixedForm"]["properties"]["replace"]["propertyNames"] = {"pattern": NAME}
    # Pydantic drops the description of a field whose type is itself a model.
    for model in (IncidentForm, ClusterState, EntryForm, TriggerForm, KnownAction, KnownExpectation):
        form = schema if model is IncidentForm else forms[model.__name__]
        properties = form["properties"] if "properties" in form else form["anyOf"][1]["properties"]
        for name, field in model.model_fields.items():
            properties[name].setdefault("description", field.description)
    entry = forms["EntryForm"]
    entry["anyOf"] = [{"required": ["do"]}, {"required": ["expect"]}]
    for field in (entry["properties"]["do"], entry["properties"]["expect"], schema["properties"]["load"]):
        several = {key: field.pop(key) for key in ("type", "items", "maxItems") if key in field}
        field["anyOf"] = [several["items"], {**several, "minItems": 1}]
    return schema


if __name__ == "__main__":
    print(schema_text(json_schema()), end="")
