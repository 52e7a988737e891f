"""The view of one run for its criteria: the manifest, and measures that are computed at their first use."""

from functools import cached_property
from typing import Any

from results.contract.aliases import criteria_of_experiment
from results.contract.manifest import Manifest
from results.contract.move import Move
from results.contract.relocation import Membership, Relocation
from results.criteria.measures import MoveMeasures
from results.criteria.move_measures import measure_move
from results.criteria.relocation_measures import measure_relocation
from results.criteria.sample_series import RunSeries
from results.criteria.step_measures import measure_steps
from results.criteria.unfit import UnfitTime, unfit_time

MODES = ("batched", "incremental")
"""What `mode` is of a move that is carried out in steps."""


BY_END = {
    "system-test": "One of Apache Kafka's own system tests",
    "command-time": "The time of one of the testbed's own commands",
}
"""The criteria that judge a run by how it ended, and what such a run is."""


class RunView:
    """A run to judge. Take samples and events as Arrow tables or pandas DataFrames."""

    def __init__(self, manifest: Manifest, samples: Any = None, events: Any = None) -> None:
        self.manifest = manifest
        self._samples, self._events = samples, events

    @cached_property
    def series(self) -> RunSeries:
        """Return the samples and events by metric and host."""
        return RunSeries(self._samples, self._events)

    @cached_property
    def unfit(self) -> UnfitTime:
        """Return when the machine was unfit, and brokers were not the cause; of a move, from its start on."""
        spans = unfit_time(self.series, self.manifest.machine.cores)
        started_us = 0 if self.manifest.steps is not None else self.measures.started_us
        return spans.between(started_us or 0, self.series.last_us() or 0)

    @cached_property
    def measures(self) -> MoveMeasures:
        """Return everything measured of the run. Raise ValueError when its manifest has nothing to measure."""
        if self.manifest.steps is not None:
            return measure_steps(self.manifest.steps.steps, self.series)
        if self.manifest.relocation is not None:
            return measure_relocation(self.manifest, self.series)
        if self.judged_by_end:
            return MoveMeasures()
        return measure_move(self.manifest, self.series)

    @property
    def move(self) -> Move:
        """Return the throttled move. Raise ValueError when the run has none."""
        if self.manifest.move is None:
            raise ValueError(f"run {self.manifest.run_id}: its manifest has no move to judge")
        return self.manifest.move

    @property
    def relocation(self) -> Relocation:
        """Return the move without a throttle. Raise ValueError when the run has none."""
        if self.manifest.relocation is None:
            raise ValueError(f"run {self.manifest.run_id}: its manifest has no relocation to judge")
        return self.manifest.relocation

    @property
    def membership(self) -> Membership | None:
        """Return the broker that joined or left; None without one."""
        return None if self.manifest.relocation is None else self.manifest.relocation.membership

    @property
    def brokers(self) -> tuple[str, ...]:
        """Return the hosts whose brokers take part in the move; of a run of steps those whose logs were watched."""
        if self.manifest.move is not None:
            return self.manifest.move.brokers
        if self.manifest.relocation is not None:
            return self.manifest.relocation.brokers
        return tuple(log.host for log in self.manifest.facts.logs or ())

    @property
    def stores(self) -> tuple[str, ...]:
        """Return the hosts of the object store; none of a move on disks alone."""
        return () if self.manifest.relocation is None else self.manifest.relocation.stores

    @property
    def criteria(self) -> tuple[str, ...] | None:
        """Return the criteria that the run's experiment names; None for an experiment that is not known."""
        named = self.manifest.criteria
        return criteria_of_experiment(self.manifest.experiment) if named is None else named

    @property
    def judged_by_end(self) -> bool:
        """Return whether the run is one test or one command, which is judged by how it ended: it moves nothing."""
        return self.manifest.move is None and any(name in BY_END for name in self.criteria or ())

    @property
    def batched(self) -> bool:
        """Return whether the move is carried out in steps."""
        return self.manifest.parameters.get("mode") in MODES

    @property
    def loaded(self) -> bool:
        """Return whether clients write while data moves: the experiment says so, or the run had a load all the same."""
        if self.manifest.relocation is not None:
            return bool(self.manifest.relocation.written_bytes_per_s)
        if self.manifest.move is None:
            return False
        named = "load-rate-sustained" in (self.criteria or ())
        return named or self.manifest.facts.live is not None or self.manifest.move.inbound_bytes_per_s > 0
