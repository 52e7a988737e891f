"""Prints the schema: `python -m testbed.topology > topologies/topology.schema.json` after a change of the form."""

from testbed.topology.file_form import json_schema_text

print(json_schema_text(), end="")
