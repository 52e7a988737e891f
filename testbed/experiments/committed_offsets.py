"""Offsets that groups commit before the internal topics of a leaving broker move, and what coordinators have then."""

from collections.abc import Callable, Iterable, Iterator

from results.contract.relocation import CommittedOffsets
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import TopicPartition
from testbed.provision.testbed import Testbed
from testbed.wait import WaitTimeout, wait_for

GROUPS = tuple(f"idle-{number}" for number in range(8))
"""Eight names whose hashes follow one another: each of the four partitions of `__consumer_offsets` has two groups."""
EARLIER, LATEST = 1, 2
"""Both are committed, in this order: a coordinator whose log lacks its end, or is read wrongly, may have the first."""
ANSWERED_S, INTERVAL_S = 30.0, 0.5
"""A coordinator refuses requests until it has read its partition. A partition here has some MB at most."""


class IdleGroups:
    """Groups without members: no consumer commits for them again, so an offset that is lost stays lost."""

    def __init__(self, testbed: Testbed, partitions: Iterable[TopicPartition]) -> None:
        self._testbed, self._partitions = testbed, tuple(partitions)
        self._problem = ""

    def commit(self) -> None:
        """Commit offsets of all partitions for each group. An error is a part of what `compare` returns."""

        def commit(admin: Admin) -> tuple[str, ...]:
            for offset in (EARLIER, LATEST):
                for group in GROUPS:
                    admin.commit_offsets(group, dict.fromkeys(self._partitions, offset))
            return ()

        _wrong, self._problem = self._answer(commit, "the acknowledgement of offsets")

    def compare(self) -> CommittedOffsets:
        """Return how the offsets that coordinators have differ from what they acknowledged.

        While some differ, ask again for `ANSWERED_S`.
        """
        wrong: tuple[str, ...] = ()
        problem = self._problem
        if not problem:
            wrong, problem = self._answer(self._differences, "the groups' offsets")
        return CommittedOffsets(len(GROUPS), len(self._partitions), wrong, problem)

    def _differences(self, admin: Admin) -> Iterator[str]:
        found = admin.committed_offsets(GROUPS)
        for group in GROUPS:
            for tp in self._partitions:
                offset = found.get(group, {}).get(tp)
                if offset != LATEST:
                    yield f"{group} has {'no offset' if offset is None else f'offset {offset}'} of {tp}, not {LATEST}"

    def _answer(self, ask: Callable[[Admin], Iterable[str]], what: str) -> tuple[tuple[str, ...], str]:
        """Ask until the answer is empty, for `ANSWERED_S`; return the last answer, or the error in its place."""

        def asked() -> tuple[tuple[str, ...], str]:
            try:
                with self._testbed.admin() as admin:  # a client asks the coordinator that it found first, for ever
                    return tuple(ask(admin)), ""
            except KafkaError as error:
                return (), str(error)

        try:
            return wait_for(asked, lambda answer: not any(answer), ANSWERED_S, INTERVAL_S, what)
        except WaitTimeout as error:
            last: tuple[tuple[str, ...], str] = error.last_seen
            return last
