"""What a replay is judged by beside its own expectations, as every experiment is: firm ground, and clean logs. Pure."""

from collections.abc import Collection, Sequence

from results.contract.logs import HostLog
from results.contract.manifest import NicMeasurement
from results.contract.schema import Finding, events_table, samples_table
from results.criteria.catalogue.logs_clean import judge_logs
from results.criteria.catalogue.machine_load import machine_idle
from results.criteria.catalogue.nic_measured import nics_as_declared
from results.criteria.cluster_measures import machine_load
from results.criteria.findings import not_judged
from results.criteria.series import RunSeries
from testbed.incidents.actions.broker import Restart
from testbed.incidents.actions.fault import InjectFault
from testbed.incidents.actions.move import Move
from testbed.incidents.evidence import Evidence
from testbed.incidents.expectations import kinds
from testbed.incidents.model import Incident
from testbed.probes.logwatch import Allowance, during, new_replicas

WINDOW_S = 11.0
"""Of the machine's load: the quota's window, as in experiments."""


def allowed(incident: Incident) -> tuple[Allowance, ...]:
    """What brokers may say because of what this practice does on purpose."""
    actions = [action for entry in incident.entries for action in entry.actions]
    moves = [action for action in actions if isinstance(action, Move)]
    faults = {action.kind for action in actions if isinstance(action, InjectFault)}
    # To the other brokers a restart by the operator is the same as one by a fault.
    faults |= {"broker-restart" for action in actions if isinstance(action, Restart)}
    return (*(new_replicas(move.topics, move.hosts) for move in moves), *during(faults))


def judge_ground(nics: tuple[NicMeasurement, ...], brokers: Sequence[str], evidence: Evidence) -> list[Finding]:
    """Each broker's NIC before the replay, and the machine's load during it."""
    run = RunSeries(samples_table(evidence.samples), events_table(evidence.events))
    load = machine_load(run, evidence.started_us, evidence.ended_us, WINDOW_S)
    return [*nics_as_declared(nics, brokers), machine_idle(load, WINDOW_S)]


def on_ground(
    expected: Sequence[Finding],
    ground: Sequence[Finding],
    logs: tuple[HostLog, ...] | None,
    brokers: Collection[str],
) -> tuple[Finding, ...]:
    """All criteria of a replay: on shaky ground no rate and no time is judged, what is there and what is lost is."""
    shaky = [criterion for criterion in ground if criterion.verdict == "inconclusive"]
    judged = [not_judged(each, shaky) if shaky and _timed(each) else each for each in expected]
    return (*judged, *judge_logs(logs, list(brokers)), *ground)


def _timed(criterion: Finding) -> bool:
    kind = kinds().get(criterion.name)
    return kind is not None and kind.timed
