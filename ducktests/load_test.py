"""The load without a move: an idle testbed must sustain it, or no scenario under load could be judged."""

import secrets
from pathlib import Path
from threading import Event

from ducktests.framework import DucktapeContext, Inconclusive, Test, parametrized, results_folder
from ducktests.parent_death import die_with_parent
from ducktests.services import KafkaService, WorkloadService
from testbed.runner.case import EVIDENCE
from testbed.runner.time_limit import keep_evidence, time_limit
from testbed.units import parse_byte_rate
from testbed.workload.outcome import LATEST_S
from testbed.workload.preload import audit
from testbed.workload.spec import ProducerSpec

LIMIT_S = 180.0
SECONDS = 20.0
PARTITIONS = range(12)


class LoadTest(Test):
    """The open-loop load on a testbed without other activity."""

    def __init__(self, test_context: DucktapeContext) -> None:
        super().__init__(test_context)
        die_with_parent()

    @parametrized([({"rate": "20MB/s"}, 3, "three-brokers")])
    def test_an_idle_testbed_takes_the_declared_rate(self, rate: str) -> None:
        """Run 20 MB/s of 1 KiB records with acks=all: no record is lost. Inconclusive when the rate is not held."""
        evidence = Path(results_folder(self.test_context)) / EVIDENCE
        topic = f"load-{secrets.token_hex(3)}"
        kafka = KafkaService(self.test_context, 3)
        with time_limit(LIMIT_S, "the load", evidence):
            kafka.start()
            ids = [host.node_id for host in kafka.testbed.topology.brokers if host.node_id is not None]
            with kafka.testbed.admin() as admin:
                placed = {n: [ids[n % len(ids)]] for n in PARTITIONS}
                admin.create_topic(topic, placed, {})
            producer = ProducerSpec("producer-1", topic, tuple(PARTITIONS), float(parse_byte_rate(rate)))
            load = WorkloadService(self.test_context, kafka, [producer])
            load.start()
            try:
                Event().wait(SECONDS)  # the load is measured for this time: there is no condition to wait for
            finally:
                load.stop()
                keep_evidence(evidence, load.recorder, None)
            assert load.result is not None
            account = audit(kafka.testbed.bootstrap, [], load.result.written)
            for each in account.producers:
                assert (each.lost, each.duplicated, each.reordered, each.corrupt) == (0, 0, 0, 0), each
            for process in load.result.processes:
                if not process.held:
                    raise Inconclusive(f"{process.name} did not hold its rate: {process.why}")
            [sent] = load.result.processes
            # An idle testbed acknowledges every due record, except the records of the load's permitted lateness.
            assert sent.acked >= sent.due - LATEST_S * producer.records_per_s, sent
