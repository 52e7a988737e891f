"""The record by whose timestamp a partition's leader is asked for an offset (ListOffsets). Pure.

The leader answers with its time index, which each replica makes for itself. So a replica that has become the leader
may have every record and yet give the wrong one, or none, to a consumer that begins at a time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.workload.records import BROKER_TIME, Where, WrittenRecords


@dataclass(slots=True)
class TimeLookup:
    """The first record, `after` so many, that is newer than all before it: the right answer for its timestamp.

    None in a log whose broker sets the timestamps. Before so many records, it is the last such record.
    """

    after: int
    time_ms: int | None = None
    offset: int = -1
    _seen: int = 0
    _done: bool = False

    def add(self, offsets: Sequence[int], times_ms: Sequence[int]) -> None:
        """Add the next records of the log."""
        if self._done or not offsets:
            return
        if BROKER_TIME in times_ms:
            self.time_ms, self._done = None, True
            return
        times = np.array(times_ms, np.int64)
        # Until the record is found, the last new one is the newest.
        before = -1 if self.time_ms is None else self.time_ms
        newest = np.maximum.accumulate(np.concatenate(([before], times)))
        newer = np.flatnonzero(times > newest[:-1])
        late_enough = newer[newer + self._seen >= self.after]
        if len(newer):
            at = int(late_enough[0] if len(late_enough) else newer[-1])
            self.time_ms, self.offset = int(times[at]), offsets[at]
        self._done = len(late_enough) > 0
        self._seen += len(times)


def time_lookups(written: Iterable[WrittenRecords]) -> dict[Where, TimeLookup]:
    """Return the lookup of each partition, each at another share of its log.

    None of a partition with transactions: the broker sets the time of their markers, which have offsets as well.
    """
    records: dict[Where, int] = {}
    marked = set()
    for each in written:
        where = each.topic, each.partition
        records[where] = records.get(where, 0) + each.acked
        if each.transactional:
            marked.add(where)
    wanted = sorted(records.keys() - marked)
    return {where: TimeLookup(records[where] * (n + 1) // (len(wanted) + 1)) for n, where in enumerate(wanted)}
