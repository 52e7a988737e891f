"""Uploads of the new leaders of tiered partitions: after a move the object store must get further segments."""

from collections.abc import Iterator
from operator import not_

from results.contract.relocation import Uploads
from testbed.errors import TestbedError
from testbed.experiments.move_environment import MoveEnvironment
from testbed.experiments.storage import SETTLED_S
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.tiered.remote_log import RemoteLog
from testbed.tiered.segments import SegmentState
from testbed.wait import WaitTimeout, wait_for

ASKED = "uploads.asked"
"""The event from which on leaders close segments early: latencies after it say nothing about the move."""
SEGMENT_MS = 1000
"""A leader closes an older segment at the next record. With less it would close one at every record."""
APPENDED_S, INTERVAL_S = 5.0, 0.2


class NewLeaderUploads:
    """The partitions of a tiered move with their log ends when it ended, and what is uploaded of later records.

    A leader uploads closed segments alone, and a partition with a small load fills none for minutes. So the topics get
    a short `segment.ms`, while the load still runs.
    """

    def __init__(self, environment: MoveEnvironment) -> None:
        self._environment = environment
        self._moved: dict[TopicPartition, int] = {}
        self._written: dict[TopicPartition, int] = {}
        self._problem = ""

    def move_ended(self) -> None:
        """Note the log end of each moved partition: its new leader appends what comes later."""
        tps = [tp for group in self._environment.throttled_groups() for tp in group.tps()]
        try:
            self._moved = self._environment.admin.end_offsets(tps)
        except KafkaError as error:
            self._problem = str(error)

    def close_segments(self) -> None:
        """Let the leaders close their segments under load; wait for a record in each partition, for `APPENDED_S`.

        A partition without a record between the move and this call, or after it, is not judged.
        """
        admin, recorder = self._environment.admin, self._environment.recorder
        try:
            before = admin.end_offsets(self._moved)
            later = {tp: end for tp, end in before.items() if end > self._moved[tp]}
            recorder.event(ASKED, "segments are closed early")
            for topic in sorted({tp.topic for tp in later}):
                admin.alter_configs(ConfigResource.topic(topic), {"segment.ms": str(SEGMENT_MS)})

            def waiting() -> set[TopicPartition]:
                return {tp for tp, end in admin.end_offsets(later).items() if end <= later[tp]}

            try:
                without = wait_for(waiting, not_, APPENDED_S, INTERVAL_S, "a record in each partition")
            except WaitTimeout as error:
                without = error.last_seen
        except KafkaError as error:
            self._problem = str(error)
            return
        self._written = {tp: self._moved[tp] for tp in later if tp not in without}

    def compare(self) -> Uploads:
        """Return the partitions of which the store has no record of after the move; wait `SETTLED_S` for the last."""
        missing, problem = tuple[str, ...](), self._problem
        if self._written:
            self._environment.context.progress("waiting for what the new leaders upload")
            with RemoteLog(self._environment.testbed.bootstrap) as remote:

                def seen() -> tuple[tuple[str, ...], str]:
                    try:
                        return tuple(self._lacking(remote)), ""
                    except TestbedError as error:
                        return (), str(error)

                try:
                    wait_for(seen, lambda found: not any(found), SETTLED_S, INTERVAL_S, "the uploads of new leaders")
                except WaitTimeout as error:
                    missing, problem = error.last_seen
        return Uploads(len(self._written), missing, problem)

    def _lacking(self, remote: RemoteLog) -> Iterator[str]:
        uploaded = {
            TopicPartition(topic, segment.of.partition): segment.end_offset
            for topic in sorted({tp.topic for tp in self._written})
            for segment in sorted(remote.segments(topic), key=lambda each: each.end_offset)
            if segment.state is SegmentState.COPIED
        }
        for tp, end in self._written.items():
            last = uploaded.get(tp, -1)
            if last < end:
                yield f"{tp} up to offset {last}, and the move ended at {end}"
