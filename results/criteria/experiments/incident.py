"""`incident-…`: a replayed incident, judged by its file's own sentences; the criteria are taken as they are."""

from typing import Any

from results.contract.manifest import Manifest
from results.contract.verdict import Finding
from results.criteria.measures import MachineLoad, MoveMeasures
from results.criteria.registry import register_family


def measure_nothing(_manifest: Manifest, _samples: Any, _events: Any) -> MoveMeasures:
    """An incident has no one move that everything is measured by."""
    return MoveMeasures(None, None, None, 0.0, None, (), (), (), (), MachineLoad(0, None, None, None, None))


def as_given(manifest: Manifest, _measures: MoveMeasures) -> list[Finding]:
    """The criteria in the manifest. Raises ValueError when it is not of an incident."""
    if manifest.incident is None:
        raise ValueError(f"run {manifest.run_id}: its manifest has no incident to judge")
    return list(manifest.incident.criteria)


register_family("incident-", measure=measure_nothing, judge=as_given)
