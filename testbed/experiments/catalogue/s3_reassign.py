"""The claim of the article: with data in S3 a reassignment takes seconds, whatever the partition's size.

All partitions move from A to B under load and without a throttle, on shaped NICs. Their logs are on A's disk, tiered
(KIP-405: the object store has all but the last segments), or in AutoMQ's streams. The report compares the measured
seconds with the article's formula, log size ÷ NIC. `testbed run s3-compare` runs all three storages.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from results.contract.handover import HandoverRecord
from testbed.experiments.experiment import Hosts, Settings, SuiteScenario, number
from testbed.experiments.layout import Layout, PartitionGroup, plan
from testbed.experiments.reassignment_run import ReassignmentRun
from testbed.experiments.storage import storage_of
from testbed.experiments.unthrottled_move import (
    RunActivity,
    parameters,
    run_alone,
    unthrottled_experiment,
    unthrottled_layout,
)
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
        self._environment = run.environment
        self._probe: Probe | None = None
        self._result: HandoverRecord | None = None

    def load_started(self) -> None:
        """Start the probe: it is part of the load."""
        environment = self._environment
        wanted = plan(environment.layout.moving, environment.ids)
        self._probe = Probe(environment.testbed.bootstrap, list(wanted.targets), len(environment.fills) + 1)
        self._probe.start()

    @contextmanager
    def around_move(self) -> Iterator[None]:
        """Watch the brokers' logs during the move, and until the new brokers' first records."""
        environment = self._environment
        wanted = plan(environment.layout.moving, environment.ids)
        asked = moves(wanted, environment.admin.partitions(wanted.topics()))
        watch, asked_us = HandoverWatch(environment.testbed), now_us()
        watch.start()
        yield
        run_alone(environment, "handed")  # the probe writes and reads the new brokers' first records in this time
        hosts = {broker: host for host, broker in environment.ids.items()}
        if self._probe is not None:
            self._probe.stop()
        self._result = watch.finish(moved(asked, hosts), asked_us, self._probe)

    def close(self) -> None:
        """Stop the probe."""
        if self._probe is not None:
            self._probe.stop()

    def written(self) -> Sequence[WrittenRecords]:
        """Return the probe's records for the audit."""
        return () if self._probe is None else self._probe.written()

    def handover(self) -> HandoverRecord | None:
        """Return the steps of the handover."""
        return self._result


def layout(settings: Settings, hosts: Hosts) -> Layout:
    """Return (A) → (B)."""
    a, b = hosts
    partitions = range(int(number(settings, "partitions")))
    group = PartitionGroup("s3", partitions, (a,), (b,), int(number(settings, "size")), number(settings, "inbound"))
    return unthrottled_layout([group], a, b)


EXPERIMENT = unthrottled_experiment(
    "s3-reassign",
    "partitions move without a throttle, under load: logs on disk, tiered, or in S3, compared with log size ÷ NIC",
    brokers=2,
    topology="s3",
    parameters=parameters(),
    layout=layout,
    activities=lambda settings: [HandoverTiming] if storage_of(settings) == "automq" else [],
    profiles={"smoke": {"size": "150MB", "partitions": "4"}, "release": {"size": "3GB", "partitions": "100"}},
    suites=(
        SuiteScenario(
            "brief", ("ci",), "unthrottled", 6, ("storage=disk", "size=500MB", "partitions=20"), topology="two-brokers"
        ),
    ),
    criteria=("tiered-local-fraction", "copied-bytes", "duration-formula", "store-requests"),
)
