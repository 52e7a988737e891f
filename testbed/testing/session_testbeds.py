"""The testbeds of one pytest process: one for each topology, made at its first use, removed at the session's end."""

import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress

from testbed.api import UserTestbed
from testbed.errors import TestbedError
from testbed.provision.containers import Engine
from testbed.provision.resources import collect_testbeds

PREFIX = "pytest-"


def remove_dead_sessions() -> None:
    """Remove the testbeds of killed pytest processes. What cannot be removed fails no test: `testbed gc` names it."""
    with closing(Engine()) as engine, suppress(TestbedError):
        for _line in collect_testbeds(engine, PREFIX, []):
            pass


class SessionTestbeds:
    """A testbed for each topology; `worker` is the worker of pytest-xdist, which has testbeds of its own."""

    def __init__(self, worker: str, up: Callable[..., UserTestbed] = UserTestbed.up) -> None:
        self._worker, self._up = worker, up
        self._token = secrets.token_hex(3)
        self._made: dict[str, UserTestbed] = {}
        self._declared: dict[str, tuple[str, Mapping[str, str]]] = {}
        """Topology → what its testbed was made as, see `_as_made`."""
        self._count = 0

    def get(self, topology: str) -> UserTestbed:
        """Return the testbed of `topology`, whole and serving. Raise `TestbedError` when it cannot be provisioned.

        A test may have injected faults, stopped Kafka, or changed its properties or defects: all is undone. A testbed
        that is not as declared even then is replaced; so is one whose hosts or releases a test has changed.
        """
        known = self._made.get(topology)
        if known is not None:
            if _as_made(known) == self._declared[topology] and _restored(known):
                return known
            self._remove(topology)
        elif not self._count:
            remove_dead_sessions()
        self._count += 1
        name = f"{PREFIX}{self._token}-{self._worker}-{self._count}"
        made = self._made[topology] = self._up(topology, name=name, ephemeral=True)
        self._declared[topology] = _as_made(made)
        return made

    def close(self) -> None:
        """Remove all testbeds. Raise an error after every removal was tried."""
        with ExitStack() as removals:
            for topology in list(self._made):
                removals.callback(self._remove, topology)

    def _remove(self, topology: str) -> None:
        testbed = self._made.pop(topology)
        try:
            testbed.down()
        finally:
            testbed.close()


def _as_made(testbed: UserTestbed) -> tuple[str, Mapping[str, str]]:
    """Return the digest of the topology, and the release of each host."""
    return testbed.topology.digest(), testbed.state.kafka


def _restored(testbed: UserTestbed) -> bool:
    """Heal faults, put properties and defects back, and start stopped brokers; return whether all is as declared."""
    try:
        testbed.faults.clear()
        if testbed.shaping_differences():
            return False
        testbed.reconfigure({}, defects={})
        testbed.start_kafka()
    except TestbedError:
        return False
    return True
