"""Putting back what a journal says was there, and seeing that it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from testbed.errors import TestbedError
from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from testbed.kafka.types import AdminApi, ConfigResource
from testbed.reassignment.changes import EVERY_BROKER, Change, by_resource
from testbed.wait import WaitTimeout, wait_for

_INTERVAL_S = 0.1
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Interference:
    """Somebody else changed a key while it was ours: neither the value set nor the original was found."""

    change: Change
    found: str | None

    def __str__(self) -> str:
        was = "not set" if self.found is None else repr(self.found)
        back = "removed" if self.change.original is None else f"put back to {self.change.original!r}"
        return f"{self.change.resource}: {self.change.key} was {was}, not {self.change.value!r} as set; {back}"


@dataclass(frozen=True, slots=True)
class Restored:
    """A verified restore. ``gone``: topics deleted meanwhile, which have nothing to put back."""

    changes: tuple[Change, ...] = ()
    interferences: tuple[Interference, ...] = ()
    gone: tuple[str, ...] = ()


class RestoreError(TestbedError):
    """Something could not be put back, or was not there afterwards; ``problems`` says what, one line each."""

    def __init__(self, problems: Sequence[str], done: Restored) -> None:
        self.problems = tuple(problems)
        self.done = done
        super().__init__("the throttle was not wholly removed:\n  " + "\n  ".join(problems))


def read_configs(admin: AdminApi, resource: ConfigResource, from_broker: int | None = None) -> dict[str, str]:
    """Return what is set on the resource itself: a broker asked itself, all else as the given one has it."""
    if resource == EVERY_BROKER:
        asked = from_broker if from_broker is not None else min(broker.id for broker in admin.cluster().brokers)
        return dict(admin.broker_configs(asked).default)
    if resource.kind == "broker":
        return dict(admin.broker_configs(int(resource.name)).broker)
    return admin.topic_configs(resource.name, from_broker)


def restore(admin: AdminApi, changes: Sequence[Change], timeout_s: float) -> Restored:
    """Put every changed key back to its original value or absence, and wait until that is what is there.

    Keys that were not changed are not touched, nor rates that were right already. Every resource is tried, also
    after one has failed; then `RestoreError` lists those that remain. ``timeout_s`` bounds the wait for all
    resources to show the originals. Topics are read many at a time.
    """
    changes = [change for change in changes if change.made]
    restoring = _Restoring(admin, by_resource(changes))
    restoring.put_back()
    restoring.wait(timeout_s)
    done = Restored(tuple(changes), tuple(restoring.interferences), tuple(restoring.gone))
    if restoring.problems:
        raise RestoreError(list(restoring.problems.values()), done)
    return done


class _Restoring:
    """One restore: what is left of it, and what was found."""

    def __init__(self, admin: AdminApi, todo: Mapping[ConfigResource, Sequence[Change]]) -> None:
        self._admin = admin
        self._left = dict(todo)
        self.interferences: list[Interference] = []
        self.gone: list[str] = []
        self.problems: dict[ConfigResource, str] = {}

    def put_back(self) -> None:
        """Write every original; what fails is left."""
        for resource, found in self._read().items():
            mine = self._left[resource]
            self._try(
                resource,
                partial(
                    self._admin.alter_configs,
                    resource,
                    {change.key: change.original for change in mine if change.original is not None},
                    [change.key for change in mine if change.original is None],
                ),
                as_it_was=all(found.get(change.key) == change.original for change in mine),
            )
            if resource in self._left:  # a topic that is gone lacks nothing
                self.interferences += [
                    Interference(change, found.get(change.key))
                    for change in mine
                    if found.get(change.key) not in change.ours
                ]

    def wait(self, timeout_s: float) -> None:
        """Wait until all that was written is what is there."""
        try:
            wait_for(self._different, lambda left: not left, timeout_s, _INTERVAL_S, "the originals")
        except WaitTimeout as error:
            self.problems |= {
                resource: f"waited {timeout_s:g} s for the originals of {resource}; last seen: {seen}"
                for resource, seen in error.last_seen.items()
            }

    def _different(self) -> dict[ConfigResource, list[str]]:
        found = {}
        for resource, there in self._read().items():
            found[resource] = [
                f"{change.key} is {there.get(change.key)!r}, not {change.original!r}"
                for change in self._left[resource]
                if there.get(change.key) != change.original
            ]
        return {resource: seen for resource, seen in found.items() if seen}

    def _read(self) -> dict[ConfigResource, Mapping[str, str]]:
        """What is set now on each resource that is left; of one that cannot be read nothing is."""
        topics = [resource for resource in self._left if resource.kind == "topic"]
        keys = sorted({change.key for resource in topics for change in self._left[resource]})
        found: dict[ConfigResource, Mapping[str, str]] = {}
        try:
            lists = self._admin.topics_configs([topic.name for topic in topics], keys) if topics else {}
            # One that has nothing may have been deleted: where something should be, it is asked by itself.
            found = {
                topic: lists.get(topic.name, {})
                for topic in topics
                if topic.name in lists or all(change.original is None for change in self._left[topic])
            }
        except KafkaError:
            pass  # one of them may not be read, or is asked for in vain: each by itself says which
        for resource in [each for each in self._left if each not in found]:
            there = self._try(resource, partial(read_configs, self._admin, resource))
            if there is not None:
                found[resource] = there
        return found

    def _try(self, resource: ConfigResource, function: Callable[[], _T], *, as_it_was: bool = False) -> _T | None:
        """What a request gives; None when it fails, and the resource is left no more.

        Who has not the right to write has not written: where all is `as_it_was` there is nothing to put back.
        """
        try:
            return function()
        except KafkaError as error:
            del self._left[resource]
            if resource.kind == "topic" and error.name == UNKNOWN_TOPIC_OR_PARTITION:
                self.gone.append(resource.name)
            elif not (as_it_was and error.name.endswith("_AUTHORIZATION_FAILED")):
                self.problems[resource] = str(error)
            return None
