"""Topologies: which hosts, racks and NICs there are. Loaded from YAML or built in Python; knows nothing of
containers."""

from testbed.topology.links import Disk, Impairment, Link, Nic, NicUse, default_burst_bytes
from testbed.topology.load import load, load_document, loads
from testbed.topology.model import AutomqSource, Host, RemoteStorage, Role, Topology
from testbed.topology.problems import Problem, TopologyError
from testbed.topology.schema import json_schema

__all__ = [
    "AutomqSource",
    "Disk",
    "Host",
    "Impairment",
    "Link",
    "Nic",
    "NicUse",
    "Problem",
    "RemoteStorage",
    "Role",
    "Topology",
    "TopologyError",
    "default_burst_bytes",
    "json_schema",
    "load",
    "load_document",
    "loads",
]
