"""A consumer reads from the beginning while other partitions move: from the device or the object store, not a cache.

The consumer's topic does not move. Before the move a program evicts all logs from A's page cache. The consumer then
reads from A's device, or from the object store with tiered or S3 storage. Any other source makes the run inconclusive.
The report shows the producers' latencies with this load.
"""

from collections.abc import Sequence
from typing import Literal

from results.contract.relocation import STORAGES, ColdRead
from testbed.errors import TestbedError
from testbed.experiments.experiment import Hosts, Parameter, Settings, SuiteScenario, above_zero, number
from testbed.experiments.handover_timing import handover_timing
from testbed.experiments.layout import RECORD_BYTES, Layout, PartitionGroup
from testbed.experiments.reassignment_run import ReassignmentRun
from testbed.experiments.storage import check_size, storage_of
from testbed.experiments.unthrottled_move import RunActivity, parameters, unthrottled_experiment, unthrottled_layout
from testbed.kafka.node import DATA_DIR
from testbed.probes.brokers import sampled_bps
from testbed.units import parse_size
from testbed.wait import WaitTimeout, wait_for
from testbed.workload.outcome import ProcessResult
from testbed.workload.spec import ConsumerSpec
from testbed.workload.workload import Workload

READER = "cold-1"
BEGUN_S = 15.0
READ_S, READ_TIMES = 120.0, 4
"""The seconds in which all is read after the move, and how many times its bytes ÷ NIC come on top. One consumer of
tiered partitions was given 8 MB/s over 200 Mbit/s, a third of that rate (docs/measurements/tiered.md)."""
EVICT = """
import os, sys
forgotten = 0
for folder, _folders, files in os.walk(sys.argv[1]):
    for name in files:
        if name.endswith(".log"):
            with open(os.path.join(folder, name), "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                forgotten += os.fstat(file.fileno()).st_size
print(forgotten)
"""
"""A program for a broker's host. It evicts only the logs from the page cache."""


class ColdConsumer(RunActivity):
    """The consumer of the topic that does not move. It reads from the beginning after the eviction of the logs.

    The moving topic is read from the same device: the sizes distinguish the two.
    """

    def __init__(self, run: ReassignmentRun) -> None:
        environment = self._environment = run.environment
        (self._group,) = (group for group in environment.layout.throttled if not group.moves)
        group_id = f"cold-{environment.context.run_id[-6:]}"
        spec = ConsumerSpec(READER, (self._group.topic,), group_id, from_beginning=True)
        recorder, testbed = environment.recorder, environment.testbed
        networks = testbed.client_networks()
        self._consumer = Workload(testbed.bootstrap, [spec], 1, recorder.add, recorder.event, networks=networks)
        self._evicted: int | None = None
        self._read = 0
        """The records that it was given until the measurement of its reads ended."""

    def before_move(self) -> None:
        """Evict the logs from the page cache and start to read."""
        environment = self._environment
        environment.context.progress("evicting the logs from the page cache; a consumer then reads from the beginning")
        try:
            self._evicted = self._evict()
        except (TestbedError, ValueError) as error:
            environment.recorder.event("note", "the page cache was not evicted", {"error": str(error)})
        environment.recorder.event("cold.started", READER)
        self._consumer.start()
        wait_for(self._records, lambda count: count > 0, BEGUN_S, 0.05, "the consumer's first record")

    def after_move(self) -> None:
        """Wait until the consumer has read all records."""
        fill = next(each for each in self._environment.fills if each.topic == self._group.topic)
        written = fill.records_per_partition * len(fill.partitions)
        recorder, leader = self._environment.recorder, self._environment.testbed.topology.host(self._group.leader)
        timeout_s = READ_S + READ_TIMES * 8 * self._group.bytes / sampled_bps(leader)[0]
        try:
            wait_for(self._records, lambda count: count >= written, timeout_s, 0.1, "the consumer to have read all")
        except WaitTimeout as error:
            recorder.event("note", "not all was read", {"error": str(error)})
        self._read = self._records()
        recorder.event("cold.done", READER, {"records": self._read})

    def cold_read(self) -> ColdRead:
        """Return the bytes and records that the consumer read, and their required source."""
        source: Literal["device", "store"] = "device" if self._environment.setup.storage == "disk" else "store"
        return ColdRead(READER, self._read, self._read * RECORD_BYTES, self._evicted, source)

    def readers(self) -> Sequence[ProcessResult]:
        """Stop the consumer and return it."""
        return self._consumer.stop().processes

    def close(self) -> None:
        """Stop the consumer."""
        self._consumer.stop()

    def _records(self) -> int:
        return int(self._environment.recorder.latest(READER, "client.consume.records") or 0)

    def _evict(self) -> int:
        """Evict the leader's logs from its page cache and return their bytes."""
        shell = self._environment.testbed.hosts[self._group.leader]
        return int(shell.run(["python3", "-c", EVICT, DATA_DIR]).stdout)


def layout(settings: Settings, hosts: Hosts) -> Layout:
    """Return the layout: `s3` moves (A) → (B) under inbound traffic; `cold` stays on A, and the consumer reads it.

    Raise `UsageError` when `cold` is too small to be mostly in the object store.
    """
    a, b = hosts
    partitions = range(int(number(settings, "partitions")))
    size_bytes, read_bytes = int(number(settings, "size")), int(number(settings, "read"))
    check_size(storage_of(settings), read_bytes, len(partitions))
    groups = [
        PartitionGroup("s3", partitions, (a,), (b,), size_bytes, number(settings, "inbound")),
        PartitionGroup("cold", partitions, (a,), (a,), read_bytes),
    ]
    return unthrottled_layout(groups, a, b)


EXPERIMENT = unthrottled_experiment(
    "cold-read",
    "a consumer reads from the beginning while partitions move: from the device, or from the store, not from a cache",
    brokers=2,
    topology="s3",
    automq_topology="automq",
    parameters=parameters(
        Parameter("read", "300MB", above_zero(parse_size), "what the consumer reads, from a topic that does not move")
    ),
    layout=layout,
    activities=lambda settings: [ColdConsumer, *handover_timing(settings)],
    profiles={
        "smoke": {"size": "100MB", "read": "150MB", "partitions": "4"},
        "release": {"size": "3GB", "read": "3GB", "partitions": "100"},
    },
    suites=SuiteScenario("s3", ("ci", "release"), "cold-read", 5).over("storage", *STORAGES),
    criteria=("tiered-local-fraction", "cold-read", "store-requests"),
)
