"""A testbed's state for tests."""

from testbed.owner import Owner
from testbed.provision.state import TestbedState


def make(name="one", **changes) -> TestbedState:
    fields = {
        "name": name,
        "status": "up",
        "slot": 0,
        "topology": {},
        "topology_digest": "d",
        "owner": str(Owner.this_process()),
        "ephemeral": False,
        "created": "now",
        "cluster_id": "c",
        "kafka": {"b1": "4.3.1"},
        "overlay": {},
        "host_keys": {},
    }
    return TestbedState(**{**fields, **changes})
