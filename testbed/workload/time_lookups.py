"""The records by whose timestamps a partition's leader is asked for offsets (ListOffsets). Pure.

The leader answers with its time index, which each replica makes for itself. So a replica that has become the leader
may have every record and yet give the wrong one, or none, to a consumer that begins at a time.
"""

from collections.abc import Iterable, Mapping, Sequence
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


def time_lookups(written: Iterable[WrittenRecords]) -> dict[Where, tuple[TimeLookup, ...]]:
    """Return the lookups of each partition: of its first record, of its last, and of one between them.

    The one between is at another share of each log. A partition with transactions has no lookups: the broker sets the
    time of their markers, which have offsets as well.
    """
    records: dict[Where, int] = {}
    marked = set()
    for each in written:
        where = each.topic, each.partition
        records[where] = records.get(where, 0) + each.acked
        if each.transactional:
            marked.add(where)
    wanted = sorted(records.keys() - marked)
    return {
        where: tuple(TimeLookup(records[where] * part // (len(wanted) + 1)) for part in (0, n, len(wanted) + 1))
        for n, where in enumerate(wanted, 1)
    }


RightAnswer = tuple[int, int]
"""A timestamp in ms, and the offset of its record."""


def rounds(lookups: Mapping[Where, Iterable[TimeLookup]]) -> list[dict[Where, RightAnswer]]:
    """Return what to ask for in each round: a request has one timestamp of each partition. None is asked for twice."""
    found: list[dict[Where, RightAnswer]] = []
    for where, several in lookups.items():
        offsets = {each.time_ms: each.offset for each in several if each.time_ms is not None}
        found += [{} for _ in range(len(offsets) - len(found))]
        for asked, answer in zip(found, offsets.items(), strict=False):
            asked[where] = answer
    return found
