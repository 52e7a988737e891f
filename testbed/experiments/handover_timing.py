"""The steps of each partition's handover, timed during a move on shared storage."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from testbed.experiments.experiment import Settings
from testbed.experiments.layout import plan
from testbed.experiments.model_inputs import instant
from testbed.experiments.reassignment_run import ReassignmentRun
from testbed.experiments.storage import storage_of
from testbed.experiments.unthrottled_move import MakeActivity, RunActivity, run_alone
from testbed.handover.probe import Probe
from testbed.handover.run import HandoverWatch, moved
from testbed.probes.recorder import now_us
from testbed.reassignment.plan import moves
from testbed.workload.records import WrittenRecords


class HandoverTiming(RunActivity):
    """An activity that times the steps of each partition's handover on shared storage.

    A probe writes to and reads from every partition meanwhile. The audit includes its records.
    """

    def __init__(self, run: ReassignmentRun) -> None:
        environment = self._environment = run.environment
        moving = [tp for group in environment.layout.moving for tp in group.tps()]
        self._probe = Probe(environment.testbed.bootstrap, moving, len(environment.fills) + 1)

    def load_started(self) -> None:
        """Start the probe: it is part of the load."""
        self._probe.start()

    @contextmanager
    def around_move(self) -> Iterator[None]:
        """Watch the brokers' logs during the move, and until the new brokers' first records.

        Steps count from the request, as the move does: before it the driver asks what the cluster is.
        """
        environment = self._environment
        wanted = plan(environment.layout.moving, environment.ids)
        asked = moves(wanted, environment.admin.partitions(wanted.topics()))
        watch, before_us = HandoverWatch(environment.testbed), now_us()
        watch.start()
        yield
        run_alone(environment, "handed")  # the probe writes and reads the new brokers' first records in this time
        hosts = {broker: host for host, broker in environment.ids.items()}
        self._probe.stop()
        asked_us = instant(environment.recorder.events(), "move.started") or before_us
        killed_us = environment.setup.action.killed_us
        self.handover = watch.finish(moved(asked, hosts), asked_us, self._probe, killed_us=killed_us)

    def close(self) -> None:
        """Stop the probe."""
        self._probe.stop()

    def written(self) -> Sequence[WrittenRecords]:
        """Return the probe's records for the audit."""
        return self._probe.written()


def handover_timing(settings: Settings) -> list[MakeActivity]:
    """Return the activity where the storage is shared; nothing otherwise."""
    return [HandoverTiming] if storage_of(settings) == "automq" else []
