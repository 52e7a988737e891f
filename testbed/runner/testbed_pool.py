"""The testbeds of a campaign: one for each topology that its variants need, of which one at most runs Kafka."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from testbed.errors import TestbedError
from testbed.hosts.host import in_parallel
from testbed.kafka.capabilities import Capability, of_software
from testbed.kafka.node import DATA_DIR
from testbed.provision import state as states
from testbed.provision.containers import Engine
from testbed.provision.resources import remove
from testbed.provision.serving import empty_buckets
from testbed.provision.testbed import Testbed
from testbed.runner.variant import Resolved

Progress = Callable[[str], None]
MOST_KEPT = 4
"""Testbeds that stand at the same time; one without a running Kafka costs some sshd processes and no CPU."""
FORMATTED = ("meta.properties", "bootstrap.checkpoint")
"""What a node's data directory holds before its first start: left when it is emptied."""


@dataclass(frozen=True, slots=True)
class PoolStep:
    """What is done before a slot: testbeds removed, then the slot's own made, or not."""

    remove: tuple[str, ...]
    make: bool


def pool_step(standing: Sequence[str], wanted: str, most: int = MOST_KEPT) -> PoolStep:
    """How to come from the testbeds that stand (longest unused first) to one that has `wanted`. Pure.

    A testbed is used again for every slot of its kind: making one costs seconds in which caches and disk are
    disturbed. It is removed only when there would be more than `most`, longest unused first.
    """
    if wanted in standing:
        return PoolStep((), False)
    return PoolStep(tuple(standing[: max(0, len(standing) - most + 1)]), True)


class TestbedPool:
    """Makes, empties, and removes the testbeds of one campaign. They are garbage once this process is dead."""

    __test__ = False  # the name starts with "Test": pytest must not take it for one

    def __init__(self, token: str, progress: Progress) -> None:
        self._token = token
        self._progress = progress
        self._standing: dict[str, Testbed] = {}
        """Ground → its testbed, longest unused first."""
        self._kafka: dict[str, dict[str, str]] = {}
        """Ground → the Kafka of each host, as it was made."""

    def ready(self, wanted: Resolved) -> Testbed:
        """A testbed for `wanted`, empty, with the broker properties it asks for, and no Kafka running anywhere.

        Raises `TestbedError`; a testbed that cannot be got ready is removed, so that the next try makes a new one.
        """
        if changed := self._changed(wanted.ground):
            self._progress(f"removing a testbed that is not as declared any more: {changed}")
            self.drop(wanted.ground)
        planned = pool_step(list(self._standing), wanted.ground)
        for ground in planned.remove:
            self.drop(ground)
        for ground in [ground for ground in self._standing if ground != wanted.ground]:
            try:
                empty(self._standing[ground])
            except TestbedError as error:
                self._progress(f"removing a testbed whose Kafka cannot be stopped: {error}")
                self.drop(ground)
        if planned.make:
            self._standing[wanted.ground] = self._make(wanted)
            self._kafka[wanted.ground] = dict(self._standing[wanted.ground].state.kafka)
        else:
            self._standing[wanted.ground] = self._standing.pop(wanted.ground)  # used last
        try:
            empty(self._standing[wanted.ground])
        except TestbedError:
            self.drop(wanted.ground)
            raise
        return self._standing[wanted.ground]

    def start(self, wanted: Resolved) -> Testbed:
        """Start Kafka on the testbed that `ready` gave, with the variant's properties. Raises `TestbedError`."""
        testbed = self._standing[wanted.ground]
        try:
            if dict(wanted.overlay) != dict(testbed.state.overlay):
                testbed.reconfigure(wanted.overlay, progress=self._progress)
            else:
                testbed.start_kafka(progress=self._progress)
        except TestbedError:
            self.drop(wanted.ground)
            raise
        return testbed

    def drop(self, ground: str) -> None:
        """Remove the testbed of a ground, if there is one."""
        testbed = self._standing.pop(ground, None)
        if testbed is not None:
            testbed.down()

    def close(self) -> None:
        """Remove all; the first failure is raised after all have been tried."""
        in_parallel(list(self._standing), self.drop)

    def _changed(self, ground: str) -> str | None:
        """What a run has left otherwise than it found it, so that the next one cannot begin there."""
        testbed = self._standing.get(ground)
        if testbed is None:
            return None
        if dict(testbed.state.kafka) != self._kafka[ground]:
            return f"Kafka is {', '.join(sorted(set(testbed.state.kafka.values())))} now"
        return next(iter(testbed.shaping_differences()), None)

    def _make(self, wanted: Resolved) -> Testbed:
        name = f"series-{self._token}-{wanted.ground[:6]}"
        if states.load(name) is not None:
            # Of an earlier command on this campaign, which is dead: the journal's lock is ours.
            self._progress(f"removing {name}, left by an interrupted campaign")
            engine = Engine()
            try:
                remove(engine, name)
            finally:
                engine.close()
        return Testbed.up(wanted.topology, name=name, overlay=wanted.overlay, ephemeral=True, progress=self._progress)


def empty(testbed: Testbed) -> None:
    """End Kafka on every host and remove its data, so that every run begins on a cluster as it was formatted.

    Of what lies in an object store nothing is left either. A cluster whose partitions lie there formats itself.
    """
    shared = Capability.SHARED_STORAGE in of_software(testbed.topology)
    kept = () if shared else FORMATTED
    nodes = [host for host in testbed.topology.hosts if host.node_id is not None]
    # Killed: a controlled shutdown takes seconds to put in order what is removed next.
    in_parallel([host.name for host in nodes], lambda name: testbed.node(name).kill())
    in_parallel([host.name for host in nodes], lambda name: testbed.hosts[name].run(wipe(DATA_DIR, kept), timeout_s=60))
    if testbed.topology.objectstores:
        empty_buckets(testbed)


def wipe(data_dir: str, keep: Iterable[str] = FORMATTED) -> list[str]:
    """The command that removes everything from a data directory but what formatting put there. Pure."""
    if not PurePosixPath(data_dir).is_absolute() or data_dir.count("/") < 2:
        raise ValueError(f"{data_dir!r}: not a data directory")
    kept = [word for name in keep for word in ("!", "-name", name)]
    return ["find", data_dir, "-mindepth", "1", "-maxdepth", "1", *kept, "-exec", "rm", "-rf", "{}", "+"]
