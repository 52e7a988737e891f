"""Kafka and the load as ducktape services. They are facades: the testbed's own modules do the work."""

from collections.abc import Mapping, Sequence
from typing import Any

from ducktests.framework import DucktapeContext, Service
from ducktests.options import Options
from testbed.errors import TestbedError
from testbed.experiments.broker_membership import restore_hosts
from testbed.faults.active_faults import heal_leftovers
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed
from testbed.runner.ducktape import print_progress
from testbed.runner.testbed_pool import empty
from testbed.topology.model import Topology
from testbed.workload.outcome import WorkloadResult
from testbed.workload.spec import Spec
from testbed.workload.workload import Workload


class KafkaService(Service):
    """Kafka on all hosts of one testbed: started on formatted folders, stopped and emptied afterwards.

    The service neither empties nor stops a testbed that a user provisioned before (`kept`). It waits with the testbed's
    functions: ducktape's `wait_until` sleeps after the condition holds, and depends on the wall clock.
    """

    logs = {"kafka": {"path": "/var/log/kafka", "collect_default": False}}  # noqa: RUF012 - as ducktape declares it

    def __init__(self, context: DucktapeContext, hosts: int) -> None:
        super().__init__(context, num_nodes=hosts)
        self.problem: str | None = self.nodes[0].problem
        self.kept: bool = self.nodes[0].kept
        self.options: Options = self.nodes[0].options or Options()
        self._testbed: Testbed | None = None
        self._topology: Topology | None = None
        """The topology before the test's run, which may add and remove brokers."""
        if self.problem is not None:
            self.logs = {}  # there are no hosts to collect logs from

    @property
    def testbed(self) -> Testbed:
        """Return the testbed, with connections of this process. Raises `TestbedError` when there is none."""
        if self.problem is not None:
            raise TestbedError(self.problem)
        if self._testbed is None:
            self._testbed = Testbed.attach(self.nodes[0].testbed)
            self._topology = self._testbed.topology
        return self._testbed

    def start(self, overlay: Mapping[str, str] | None = None) -> None:
        """Start Kafka with `overlay` over the topology's properties. Raise `TestbedError` when it does not start."""
        testbed = self.testbed
        heal_leftovers(testbed, print_progress)
        if not self.kept:
            empty(testbed)
        if dict(overlay or {}) == dict(testbed.state.overlay):
            testbed.start_kafka(progress=print_progress)
        else:
            testbed.reconfigure(overlay or {}, progress=print_progress)

    def restore_hosts(self) -> None:
        """Give the testbed its own brokers again, after a run that added or removed some. Raise `TestbedError`."""
        if self._testbed is not None and self._topology is not None:
            restore_hosts(self._testbed, self._topology, print_progress)

    def stop(self) -> None:
        """Stop Kafka on every host and empty the host, unless the testbed is kept. Logs stay."""
        if self.problem is None and not self.kept:
            empty(self.testbed)

    def clean_node(self, node: Any) -> None:
        """Do nothing: the next start empties the hosts, also after a killed test."""

    def close(self) -> None:
        """Close the connections."""
        super().close()
        if self._testbed is not None:
            self._testbed.close()
            self._testbed = None


class WorkloadService(Service):
    """The open-loop load: processes on this machine, at the testbed's switch, and so on none of its nodes."""

    def __init__(self, context: DucktapeContext, kafka: KafkaService, specs: Sequence[Spec], seed: int = 1) -> None:
        super().__init__(context, num_nodes=0)
        self.recorder = Recorder()
        self._workload = Workload(kafka.testbed.bootstrap, specs, seed, self.recorder.add, self.recorder.event)
        self.result: WorkloadResult | None = None
        """The result of the load, after its stop."""

    def start(self) -> None:
        """Start the load; return when every producer has an acknowledgement and every consumer reads.

        Raise `TestbedError` when the load does not start.
        """
        self._workload.start()

    def stop(self) -> None:
        """Stop the load after its last records are acknowledged or given up."""
        self.result = self._workload.stop()
