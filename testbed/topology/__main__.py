"""The JSON schema of topology files: `python -m testbed.topology > topologies/topology.schema.json` prints it."""

from testbed.form import schema_text
from testbed.topology.file_form import json_schema

print(schema_text(json_schema()), end="")
