"""What is kept of a case that did not come to a run: everything that was sampled and said until then."""

from pathlib import Path

import pyarrow.parquet as pq

from results.schema import events_table, samples_table
from testbed.errors import TestbedError
from testbed.kafka.node import LOG
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed

_LOG_TIMEOUT_S = 20.0


def keep(folder: Path, recorder: Recorder, testbed: Testbed | None) -> None:
    """Write samples, events, and each host's log with its JVM's stacks into `folder`.

    Never raises for what cannot be had: that is said in `missing.txt`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(samples_table(recorder.samples()), folder / "samples.parquet", compression="zstd")
    pq.write_table(events_table(recorder.events()), folder / "events.parquet", compression="zstd")
    missing = []
    for host in testbed.topology.hosts if testbed is not None else ():
        if host.node_id is None:
            continue
        assert testbed is not None
        try:
            _stacks(testbed, host.name)
            log = testbed.hosts[host.name].run(["cat", LOG], timeout_s=_LOG_TIMEOUT_S).stdout
            (folder / f"{host.name}.log").write_text(log, encoding="utf-8")
        except TestbedError as error:
            missing.append(f"{host.name}: {error}")
    if missing:
        (folder / "missing.txt").write_text("\n".join(missing) + "\n", encoding="utf-8")


def _stacks(testbed: Testbed, host: str) -> None:
    """Have the JVM write the stacks of its threads into its log; one that does not run has none."""
    node = testbed.node(host)
    if node.pid() is not None:
        node.signal("QUIT")
