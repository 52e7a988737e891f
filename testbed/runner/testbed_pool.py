"""The testbeds of a campaign: one for each topology of its variants. At most one of them runs Kafka."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import PurePosixPath

from testbed.defects.agent import forget_notes
from testbed.errors import TestbedError
from testbed.hosts.host import in_parallel
from testbed.kafka.capabilities import Capability, of_software
from testbed.kafka.node import DATA_DIR
from testbed.provision import state as states
from testbed.provision.containers import Engine
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.runner.variant import Resolved

Progress = Callable[[str], None]
MOST_KEPT = 8
"""The most testbeds that exist at the same time: two topologies with a candidate and three baselines each.

So many take turns in the pairs of a qualification. With 6, half of those runs would each make a testbed. A testbed
without a running Kafka costs some sshd processes and no CPU.
"""
FORMATTED = ("meta.properties", "bootstrap.checkpoint")
"""The content of a node's data directory before its first start; emptying the directory keeps it."""


def to_remove(standing: Sequence[str], wanted: str, most: int = MOST_KEPT) -> tuple[str, ...]:
    """Return which of the existing testbeds (longest unused first) go before the `wanted` one is used. Pure.

    A testbed is used again for every slot of its kind, because making one disturbs caches and disk for seconds. If
    there would be more than `most`, the longest unused one is removed.
    """
    return () if wanted in standing else tuple(standing[: max(0, len(standing) - most + 1)])


class TestbedPool:
    """The testbeds of one campaign, made of its `builds`. After this process is dead, `testbed gc` collects them."""

    __test__ = False  # pytest must not collect this class, although its name starts with "Test"

    def __init__(self, token: str, progress: Progress, builds: Mapping[str, str] | None = None) -> None:
        self._token = token
        self._progress = progress
        self._builds = builds
        self._standing: dict[str, Testbed] = {}
        """The testbed of each `Resolved.topology_digest`, longest unused first."""
        self._kafka: dict[str, dict[str, str]] = {}
        """The original Kafka of each host, by `Resolved.topology_digest`."""

    def ready(self, wanted: Resolved) -> Testbed:
        """Return an empty testbed of `wanted`; no Kafka runs on it. Raise `TestbedError` and remove it on failure."""
        digest = wanted.topology_digest
        if changed := self._changed(digest):
            self._progress(f"removing a testbed that is not as declared any more: {changed}")
            self.drop(digest)
        for each in to_remove(list(self._standing), digest):
            self.drop(each)
        for each in [each for each in self._standing if each != digest]:
            try:
                empty(self._standing[each])
            except TestbedError as error:
                self._progress(f"removing a testbed whose Kafka cannot be stopped: {error}")
                self.drop(each)
        testbed = self._standing.pop(digest, None)
        if testbed is None:
            testbed = self._make(wanted)
            self._kafka[digest] = dict(testbed.state.kafka)
        self._standing[digest] = testbed  # now the last one used
        try:
            empty(testbed)
        except TestbedError:
            self.drop(digest)
            raise
        return testbed

    def start(self, wanted: Resolved) -> Testbed:
        """Start Kafka on the testbed of `ready`, with the variant's properties. Raise `TestbedError` on failure."""
        testbed = self._standing[wanted.topology_digest]
        try:
            same = dict(wanted.overlay) == dict(testbed.state.overlay)
            if not same or dict(wanted.defects) != dict(testbed.state.defects):
                testbed.reconfigure(wanted.overlay, defects=wanted.defects, progress=self._progress)
            else:
                testbed.start_kafka(progress=self._progress)
        except TestbedError:
            self.drop(wanted.topology_digest)
            raise
        return testbed

    def drop(self, topology_digest: str) -> None:
        """Remove the testbed with this `Resolved.topology_digest`, if there is one."""
        testbed = self._standing.pop(topology_digest, None)
        if testbed is not None:
            testbed.down()

    def close(self) -> None:
        """Remove all testbeds; raise the first failure after all were tried."""
        in_parallel(list(self._standing), self.drop)

    def _changed(self, topology_digest: str) -> str | None:
        """Return the change that the last run left on the testbed, where no further run can begin; None without one."""
        testbed = self._standing.get(topology_digest)
        if testbed is None:
            return None
        if testbed.state.kafka.keys() != self._kafka[topology_digest].keys():
            return f"its brokers are {', '.join(testbed.state.kafka)} now"
        if dict(testbed.state.kafka) != self._kafka[topology_digest]:
            return f"Kafka is {', '.join(sorted(set(testbed.state.kafka.values())))} now"
        return next(iter(testbed.shaping_differences()), None)

    def _make(self, wanted: Resolved) -> Testbed:
        name = f"series-{self._token}-{wanted.topology_digest[:6]}"
        if states.load(name) is not None:
            # The name belongs to an earlier, dead command on this campaign, because this process holds the journal's
            # lock.
            self._progress(f"removing {name}, left by an interrupted campaign")
            with closing(Engine()) as engine:
                remove(engine, name)
        return Testbed.up(
            wanted.topology,
            name=name,
            overlay=wanted.overlay,
            defects=wanted.defects,
            ephemeral=True,
            builds=self._builds,
            progress=self._progress,
        )


def empty(testbed: Testbed) -> None:
    """Stop Kafka on every host and remove its data, also in an object store: every run begins on a new cluster."""
    shared = Capability.SHARED_STORAGE in of_software(testbed.topology)
    kept = () if shared else FORMATTED  # a cluster with partitions in the store formats itself
    nodes = [host for host in testbed.topology.hosts if host.node_id is not None]
    # The processes are killed, because a controlled shutdown takes seconds to save data that is removed next.
    in_parallel([host.name for host in nodes], lambda name: testbed.node(name).kill())
    in_parallel([host.name for host in nodes], lambda name: testbed.hosts[name].run(wipe(DATA_DIR, kept), timeout_s=60))
    in_parallel(testbed.state.defects, lambda name: forget_notes(testbed.hosts[name]))
    if testbed.topology.objectstores:
        testbed.objectstore.empty_buckets()


def wipe(data_dir: str, keep: Iterable[str] = FORMATTED) -> list[str]:
    """Return the command that empties a data directory, except for the files that formatting wrote. Pure."""
    if not PurePosixPath(data_dir).is_absolute() or data_dir.count("/") < 2:
        raise ValueError(f"{data_dir!r}: not a data directory")
    kept = [word for name in keep for word in ("!", "-name", name)]
    return ["find", data_dir, "-mindepth", "1", "-maxdepth", "1", *kept, "-exec", "rm", "-rf", "{}", "+"]
