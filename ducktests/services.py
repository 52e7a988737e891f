"""Kafka and the load as ducktape's services: facades, the work is done where it is done for everybody else."""

from collections.abc import Mapping, Sequence
from typing import Any

from ducktests.framework import DucktapeContext, Service
from ducktests.options import Options
from testbed.errors import TestbedError
from testbed.faults.faults import heal_leftovers
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed
from testbed.runner.ducktape import tell
from testbed.runner.testbed_pool import empty
from testbed.workload.outcome import WorkloadResult
from testbed.workload.spec import Spec
from testbed.workload.workload import Workload


class KafkaService(Service):
    """Kafka on all hosts of one testbed: started as it was formatted, stopped and emptied afterwards.

    On a testbed that was up before (`kept`) nothing is emptied or stopped: it is somebody's. Waiting is the
    testbed's own: ducktape's `wait_until` sleeps after it has seen what it waits for, and trusts the clock on the wall.
    """

    logs = {"kafka": {"path": "/var/log/kafka", "collect_default": False}}  # noqa: RUF012 - as ducktape has it

    def __init__(self, context: DucktapeContext, hosts: int) -> None:
        super().__init__(context, num_nodes=hosts)
        self.problem: str | None = self.nodes[0].problem
        self.kept: bool = self.nodes[0].kept
        self.options: Options = self.nodes[0].options or Options()
        self._testbed: Testbed | None = None
        if self.problem is not None:
            self.logs = {}  # of hosts that there are not

    @property
    def testbed(self) -> Testbed:
        """The testbed, of which this process has connections of its own. Raises `TestbedError` when there is none."""
        if self.problem is not None:
            raise TestbedError(self.problem)
        if self._testbed is None:
            self._testbed = Testbed.attach(self.nodes[0].testbed)
        return self._testbed

    def start(self, overlay: Mapping[str, str] | None = None) -> None:
        """Start Kafka with `overlay` over the topology's properties. Raises `TestbedError`."""
        testbed = self.testbed
        heal_leftovers(testbed, tell)
        if not self.kept:
            empty(testbed)
        if dict(overlay or {}) == dict(testbed.state.overlay):
            testbed.start_kafka(progress=tell)
        else:
            testbed.reconfigure(overlay or {}, progress=tell)

    def stop(self) -> None:
        """Stop Kafka on every host and empty it, unless the testbed is kept. Logs stay."""
        if self.problem is None and not self.kept:
            empty(self.testbed)

    def clean_node(self, node: Any) -> None:
        """Nothing: the next start empties what there is, also what a killed test left."""

    def close(self) -> None:
        """Let go of the connections."""
        super().close()
        if self._testbed is not None:
            self._testbed.close()
            self._testbed = None


class WorkloadService(Service):
    """The open-loop load: processes on this machine, beside the testbed's switch, and so on none of its nodes."""

    def __init__(self, context: DucktapeContext, kafka: KafkaService, specs: Sequence[Spec], seed: int = 1) -> None:
        super().__init__(context, num_nodes=0)
        self.recorder = Recorder()
        self._workload = Workload(kafka.testbed.bootstrap, specs, seed, self.recorder.add, self.recorder.event)
        self.result: WorkloadResult | None = None
        """What became of it, once it was stopped."""

    def start(self) -> None:
        """Begin; returns once every producer was acknowledged, and every consumer reads. Raises `TestbedError`."""
        self._workload.start()

    def stop(self) -> None:
        """End; waits for what is under way until it is acknowledged or given up."""
        self.result = self._workload.stop()
