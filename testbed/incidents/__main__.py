"""`python -m testbed.incidents > topologies/incidents/incident.schema.json` after a change of the files' form."""

from testbed.incidents.schema import json_schema_text

print(json_schema_text(), end="")
