"""The topology that a run of an experiment provisions for itself."""

from collections.abc import Mapping

from testbed.experiments.broker_memory import with_heap
from testbed.experiments.experiment import Experiment, Value
from testbed.probes.machine import fingerprint
from testbed.software.source import parse_source
from testbed.topology.find import find
from testbed.topology.model import Topology


def run_topology(
    experiment: Experiment, settings: Mapping[str, Value], topology: str | None = None, kafka: str | None = None
) -> Topology:
    """Return the topology of a run: `topology`, or the experiment's own, with this `kafka` and the heap that it needs.

    Raise `UsageError`, or the topology's own error, when it cannot host the experiment.
    """
    found = find(topology or experiment.ready_topology(settings))
    if kafka:
        found = found.with_kafka_version(str(parse_source(kafka)))
    experiment.fits(found, settings)
    return with_heap(found, experiment.replicas(settings), fingerprint()["memory_bytes"])
