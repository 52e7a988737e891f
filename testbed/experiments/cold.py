"""A consumer from the beginning while data moves: the page cache forgets first, and who read what is counted."""

from results.contract.relocation import ColdRead
from testbed.errors import TestbedError
from testbed.experiments.experiment import Context
from testbed.experiments.mover import MoveSetup
from testbed.experiments.relocate import Relocator
from testbed.experiments.scene import RECORD_BYTES, Group
from testbed.kafka.admin import Admin
from testbed.kafka.node import DATA_DIR
from testbed.wait import WaitTimeout, wait_for
from testbed.workload.spec import ConsumerSpec
from testbed.workload.workload import Workload

READER = "cold-1"
BEGUN_S, READ_S = 15.0, 120.0
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
"""Run on a broker's host: what is on the device is forgotten by the page cache, and nothing else of the machine is."""


class ColdReader(Relocator):
    """The topic that is read does not move: what moves is read from the same device, and told apart by its size."""

    def __init__(self, context: Context, setup: MoveSetup, admin: Admin) -> None:
        super().__init__(context, setup, admin)
        (self.read,) = (group for group in self.scene.listed if not group.moves)
        spec = ConsumerSpec(READER, (self.read.topic,), f"cold-{context.run_id[-6:]}", from_beginning=True)
        self._reader = Workload(self.testbed.bootstrap, [spec], 1, self.recorder.add, self.recorder.event)
        self._evicted: int | None = None

    @property
    def written(self) -> int:
        """Records in what is read."""
        return next(
            fill.records_per_partition * len(fill.partitions) for fill in self.fills if fill.topic == self.read.topic
        )

    def __exit__(self, *error: object) -> None:
        self._reader.stop()
        super().__exit__(*error)

    def opening(self) -> None:
        """See `Relocator.opening`: have the cache forget, and begin to read."""
        self.context.progress("the page cache forgets; a consumer begins from the beginning")
        try:
            self._evicted = self._evict(self.read)
        except (TestbedError, ValueError) as error:
            self.recorder.event("note", "the page cache was not evicted", {"error": str(error)})
        self.recorder.event("cold.started", READER)
        self._reader.start()
        wait_for(self._read, lambda count: count > 0, BEGUN_S, 0.05, "the consumer's first record")

    def moved(self) -> None:
        """See `Relocator.moved`: wait until all was read."""
        try:
            wait_for(self._read, lambda count: count >= self.written, READ_S, 0.1, "the consumer to have read all")
        except WaitTimeout as error:
            self.recorder.event("note", "not all was read", {"error": str(error)})
        self.recorder.event("cold.done", READER, {"records": self._read()})

    def cold(self) -> ColdRead:
        """See `Relocator.cold`."""
        records, on_disk = self._read(), self.setup.storage == "disk"
        return ColdRead(READER, records, records * RECORD_BYTES, self._evicted, "device" if on_disk else "store")

    def _read(self) -> int:
        return int(self.recorder.latest(READER, "client.consume.records") or 0)

    def _evict(self, group: Group) -> int:
        """Bytes of logs that the leader's cache was told to forget."""
        shell = self.testbed.hosts[group.leader]
        return int(shell.run(["python3", "-c", EVICT, DATA_DIR]).stdout)
