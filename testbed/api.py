"""The testbed from Python: what a user sees. `from testbed import Testbed` is the way in."""

from collections.abc import Callable

from testbed.experiments.runner import RunRequest, RunResult, run
from testbed.faults import Faults
from testbed.provision import state as states
from testbed.provision import testbed as provisioned

__all__ = ["RunResult", "UserTestbed"]


class UserTestbed(provisioned.Testbed):
    """A running testbed, on which faults are injected and experiments run. See `provision.testbed.Testbed`."""

    @property
    def faults(self) -> Faults:
        """The faults of this testbed. Those of this process are garbage once it is dead."""
        return Faults(self)

    def run(
        self,
        experiment: str,
        *,
        profile: str = "ci",
        store: str | None = None,
        progress: Callable[[str], None] = lambda _text: None,
        **settings: str | int | float,
    ) -> RunResult:
        """Run an experiment on this testbed to its verdict; `settings` are its parameters.

        Raises `UsageError` for an experiment, profile or parameter that does not exist.
        """
        words = [f"{name}={value}" for name, value in settings.items()]
        try:
            return run(RunRequest(experiment, words, profile=profile, on=self.name, store=store), progress)
        finally:
            # The run restarts Kafka with the properties it needs, and says so in the state.
            self.state = states.load(self.name) or self.state
