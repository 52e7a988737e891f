"""Prints the schema: `python -m testbed.topology > topologies/topology.schema.json` after a change of the form."""

from testbed.form import schema_text
from testbed.topology.file_form import json_schema

print(schema_text(json_schema()), end="")
