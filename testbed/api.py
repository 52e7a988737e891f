"""The testbed's Python interface. `from testbed import Testbed` imports it."""

from collections.abc import Callable

from testbed.experiments.experiment_run import RunRequest, RunResult, run
from testbed.faults import Faults
from testbed.provision import state as states
from testbed.provision import testbed as provisioned
from testbed.topology.host import DeclaredHost

__all__ = ["RunResult", "UserTestbed"]


class UserTestbed(provisioned.Testbed):
    """A running testbed that injects faults and runs experiments. See `provision.testbed.Testbed`."""

    @property
    def faults(self) -> Faults:
        """Return the faults of this testbed. A fault of this process is garbage once the process is dead."""
        return Faults(self)

    def add_host(
        self,
        host: DeclaredHost | str,
        *,
        like: str = "",
        step: Callable[[str], None] = lambda _name: None,
        progress: Callable[[str], None] = lambda _text: None,
    ) -> DeclaredHost:
        """Add a host as `provision.testbed.Testbed.add_host` does, with the active faults of the network; return it."""
        joined = super().add_host(host, like=like, step=step, progress=progress)
        self.faults.host_joined(joined.name)
        return joined

    def run(
        self,
        experiment: str,
        *,
        profile: str = "ci",
        store: str | None = None,
        progress: Callable[[str], None] = lambda _text: None,
        **settings: str | int | float,
    ) -> RunResult:
        """Run an experiment with these parameters; return its result. Raise `UsageError` for unknown names."""
        words = [f"{name}={value}" for name, value in settings.items()]
        try:
            return run(RunRequest(experiment, words, profile=profile, on=self.name, store=store), progress)
        finally:
            # The run restarts Kafka with other properties; a broker that it removed and added again has another key.
            saved = states.load(self.name)
            if saved is not None and saved != self.state:
                self.become(saved)
