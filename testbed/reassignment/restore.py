"""Putting back what a journal says was there, and seeing that it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.errors import TestbedError
from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from testbed.kafka.types import AdminApi, ConfigResource
from testbed.reassignment.changes import EVERY_BROKER, Change, by_resource
from testbed.wait import WaitTimeout, wait_for

_INTERVAL_S = 0.1


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
    after one has failed; then `RestoreError` lists those that remain. ``timeout_s`` bounds the wait for each
    resource to show the originals.
    """
    problems: list[str] = []
    interferences: list[Interference] = []
    gone: list[str] = []
    changes = [change for change in changes if change.made]
    for resource, mine in by_resource(changes).items():
        try:
            interferences += _restore_resource(admin, resource, mine, timeout_s)
        except KafkaError as error:
            if resource.kind == "topic" and error.name == UNKNOWN_TOPIC_OR_PARTITION:
                gone.append(resource.name)
            else:
                problems.append(str(error))
        except WaitTimeout as error:
            problems.append(str(error))
    done = Restored(tuple(changes), tuple(interferences), tuple(gone))
    if problems:
        raise RestoreError(problems, done)
    return done


def _restore_resource(
    admin: AdminApi, resource: ConfigResource, mine: Sequence[Change], timeout_s: float
) -> list[Interference]:
    found = read_configs(admin, resource)
    interferences = [
        Interference(change, found.get(change.key)) for change in mine if found.get(change.key) not in change.ours
    ]
    admin.alter_configs(
        resource,
        {change.key: change.original for change in mine if change.original is not None},
        [change.key for change in mine if change.original is None],
    )

    def different() -> list[str]:
        there = read_configs(admin, resource)
        return [
            f"{change.key} is {there.get(change.key)!r}, not {change.original!r}"
            for change in mine
            if there.get(change.key) != change.original
        ]

    wait_for(different, lambda left: not left, timeout_s, _INTERVAL_S, f"the originals of {resource}")
    return interferences
