"""What KIP-455's scenarios have in common: how a scenario of steps becomes an experiment.

What is expected is what KRaft does, by its controller's rules (`PartitionReassignmentReplicas` and
`PartitionChangeBuilder` in `org.apache.kafka.controller`); `kip` says where the KIP's text has it otherwise.
`docs/kip455.md` has the table.
"""

from collections.abc import Mapping
from typing import Any

from testbed.errors import UsageError
from testbed.experiments.experiment import Context, Experiment, Outcome, Value
from testbed.experiments.stepping import Scenario, run_steps
from testbed.kafka.capabilities import ON_DISK
from testbed.kafka.properties import FETCH_TUNED
from testbed.topology.model import Topology

SIX = "six-brokers"
DEDICATED = "controllers"


def experiment(
    name: str, summary: str, *, brokers: int = 6, dedicated: bool = False, topology: str = SIX, **scenario: Any
) -> Experiment:
    """An experiment from its scenario (`Scenario`'s fields).

    It needs brokers with the ids 1 to `brokers`; with `dedicated` also three controllers that are no brokers.
    """
    built = Scenario(**scenario)

    def overlay(_settings: Mapping[str, Value]) -> Mapping[str, str]:
        return FETCH_TUNED

    def check(found: Topology) -> None:
        there = {host.node_id for host in found.brokers}
        if not set(range(1, brokers + 1)) <= there:
            raise UsageError(f"{name} needs brokers 1 to {brokers}, as in {topology}; {found.name} has other ones")
        own = [host for host in found.controllers if host.node_id not in there]
        if dedicated and len(own) < 3:
            raise UsageError(
                f"{name} needs three controllers that are no brokers, as in {topology}; {found.name} has {len(own)}"
            )

    def run(context: Context) -> Outcome:
        return run_steps(context, built)

    return Experiment(name, summary, topology, (), {}, overlay, check, run, ON_DISK)
