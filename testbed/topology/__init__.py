"""Topologies: which hosts, racks and NICs there are. Loaded from YAML or built in Python; knows nothing of
containers."""

from testbed.topology.load import load, load_document, loads
from testbed.topology.model import Host, Nic, Role, Topology, default_burst_bytes
from testbed.topology.problems import Problem, TopologyError
from testbed.topology.schema import json_schema

__all__ = [
    "Host",
    "Nic",
    "Problem",
    "Role",
    "Topology",
    "TopologyError",
    "default_burst_bytes",
    "json_schema",
    "load",
    "load_document",
    "loads",
]
