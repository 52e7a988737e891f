"""What is sampled of the object store: each server's NICs, and what it has counted of its own requests."""

from collections.abc import Mapping

from testbed.hosts import Host as Reached
from testbed.objectstore.server import PORT
from testbed.probes.recorder import Recorder
from testbed.topology.model import Topology


def watch_stores(recorder: Recorder, topology: Topology, hosts: Mapping[str, Reached]) -> None:
    """Start the agent on every host of the object store; on none, where the topology has none."""
    for store in topology.objectstores:
        recorder.watch_host(
            hosts[store.name],
            topics=[],
            devices=[nic.name for nic in store.nics],
            log_dir=None,
            jmx_port=None,
            s3_port=PORT,
        )
