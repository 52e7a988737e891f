"""The live load of an experiment: what clients write to its partitions and read from them, before, during, after."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.experiments.scene import Scene
from testbed.probes.machine import wait_calm
from testbed.probes.recorder import Recorder
from testbed.workload.outcome import WorkloadResult
from testbed.workload.spec import ConsumerSpec, ProducerSpec, Spec
from testbed.workload.workload import Workload

PRODUCERS_WITH_FOLLOWERS = 2
LINGER_MS = 100.0
"""librdkafka sends a batch by itself, and wakes every follower and consumer for it: lingering for 5 ms, as Java does,
1 MB/s in records of 1 KiB kept two cores 98 % busy with requests; with 50 ms 39 %, with 100 ms, full batches, 25 %."""
WARM_BUSY, WARM_LOOK_S, WARM_S = 0.55, 3.0, 40.0
ALONE_S = 8.0
"""How long the load runs before the move and after it, for its latencies to be compared with those during it."""


def load_specs(scene: Scene, token: str) -> list[Spec]:
    """Producers for the listed groups that are written to, and a consumer of all of them. Pure.

    A broker answers one request of a connection after the other, and each has one batch. Where followers are in sync
    it waits for them, and they are busy with what catches up: several producers then share a group.
    """
    written = [group for group in scene.listed if group.inbound_bytes_per_s]
    producers: list[Spec] = []
    for group in written:
        number = min(PRODUCERS_WITH_FOLLOWERS if group.in_sync else 1, len(group.partitions))
        for part in range(number):
            partitions = tuple(group.partitions)[part::number]
            rate = group.inbound_bytes_per_s * len(partitions) / len(group.partitions)
            producers.append(
                ProducerSpec(f"producer-{len(producers) + 1}", group.topic, partitions, rate, linger_ms=LINGER_MS)
            )
    if not producers:
        return []
    topics = tuple(dict.fromkeys(group.topic for group in written))
    return [*producers, ConsumerSpec("consumer-1", topics, f"testbed-{token}")]


class Load:
    """Nothing at all when the scene is not written to."""

    def __init__(self, bootstrap: Sequence[str], scene: Scene, token: str, seed: int, recorder: Recorder) -> None:
        specs = load_specs(scene, token)
        self._recorder = recorder
        self._workload = Workload(bootstrap, specs, seed, recorder.add, self._on_event) if specs else None
        self._result: WorkloadResult | None = None

    @property
    def result(self) -> WorkloadResult | None:
        """What became of it, once it was stopped; None for no load."""
        return self._result

    @property
    def idle(self) -> bool:
        """Whether nobody writes or reads."""
        return self._workload is None

    def __enter__(self) -> "Load":
        if self._workload is not None:
            self._workload.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._workload is not None:
            self._result = self._workload.stop()

    def warm(self) -> None:
        """Let brokers and clients come to what they need in the long run, `WARM_S` at most.

        A broker that was just started compiles what it runs: three of them, with the first records, kept two cores 70
        to 100 % busy for half a minute, and 35 to 40 % after. That is no part of the move, nor of what it is compared
        with.
        """
        if self._workload is not None and not wait_calm(WARM_BUSY, WARM_LOOK_S, WARM_S):
            busy = f"still above {WARM_BUSY:.0%} busy after {WARM_S:g} s of load"
            self._recorder.event("note", "the machine did not become calm", {"why": busy})

    def alone(self, name: str) -> None:
        """Mark an instant, and let the load run by itself for `ALONE_S`."""
        if self._workload is not None:
            self._workload.mark(name)
            threading.Event().wait(ALONE_S)  # the load is what is measured: there is nothing to wait for but time

    def mark(self, name: str) -> None:
        """Mark an instant."""
        if self._workload is not None:
            self._workload.mark(name)

    def _on_event(self, kind: str, name: str, detail: Mapping[str, Any]) -> None:
        if kind == "load.mark":
            self._recorder.event(f"load.{name}", "load", detail)
        else:
            self._recorder.event(kind, name, detail)
