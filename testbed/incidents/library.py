"""The ready incidents as experiments, so that suites, nights and qualifications play their fixed variants.

The experiment `incident-NAME` passes when every expectation of the fixed variant of the ready incident NAME is met.
"""

from dataclasses import replace

from testbed.experiments.experiment import Experiment, Parameter, find_experiment, one_of
from testbed.incidents.read import find, ready_incidents
from testbed.incidents.replay import as_experiment
from testbed.suggestions import existing

PREFIX = "incident-"
FIXED = Parameter(
    "variant", "fixed", one_of("fixed"), "the variant that must pass; `testbed replay` has the broken one"
)


def own_software(experiment: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the release and the defects that the fixed variant of an incident names; none for another experiment."""
    if not experiment.startswith(PREFIX):
        return None, ()
    fixed = find(experiment.removeprefix(PREFIX)).fixed
    return fixed.document["fixed"].get("kafka"), fixed.defects or ()


def find_experiment_or_incident(name: str) -> Experiment:
    """Return the experiment of this name, or the incident of `incident-NAME`. Raise `UsageError` for another name."""
    if not name.startswith(PREFIX):
        return find_experiment(name)
    incident = find(existing("incident", name.removeprefix(PREFIX), ready_incidents()))
    return replace(as_experiment(incident.fixed, seed=0), parameters=(FIXED,))
