"""Topologies: the hosts, racks and NICs of a testbed, from YAML or built in Python. Independent of containers."""

from testbed.topology.file_form import json_schema
from testbed.topology.find import load, load_document, loads
from testbed.topology.host import AutomqSource, DeclaredHost, RemoteStorage, Role
from testbed.topology.jvm import Jvm
from testbed.topology.links import Disk, Impairment, Link, Nic, NicUse, default_burst_bytes
from testbed.topology.model import Topology, TopologyError

__all__ = [
    "AutomqSource",
    "DeclaredHost",
    "Disk",
    "Impairment",
    "Jvm",
    "Link",
    "Nic",
    "NicUse",
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
