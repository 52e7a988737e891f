"""The testbed from Python: what its facade needs of the rooms above it. `from testbed import Testbed` is the way in."""

from collections.abc import Callable, Mapping

from testbed.experiments.experiment import Value
from testbed.experiments.runner import Finished, Request, run
from testbed.provision import state as states
from testbed.provision.testbed import Testbed

__all__ = ["Finished", "Testbed", "run_on"]


def run_on(
    testbed: Testbed,
    experiment: str,
    settings: Mapping[str, Value],
    *,
    profile: str,
    store: str | None,
    progress: Callable[[str], None],
) -> Finished:
    """Run an experiment on a testbed that is up; see `Testbed.run`."""
    words = [f"{name}={value}" for name, value in settings.items()]
    try:
        return run(Request(experiment, words, profile=profile, on=testbed.name, store=store), progress)
    finally:
        # The run restarts Kafka with the properties it needs, and says so in the state.
        testbed.state = states.load(testbed.name) or testbed.state
