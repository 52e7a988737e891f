"""What is kept of a case that did not come to a run: everything that was sampled and said until then."""

from pathlib import Path

import pyarrow.parquet as pq

from results.contract.schema import events_table, samples_table
from testbed.errors import TestbedError
from testbed.hosts import Daemon
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed

_LOG_TIMEOUT_S = 20.0


def keep(folder: Path, recorder: Recorder, testbed: Testbed | None) -> None:
    """Write samples, events, and the log of each host's server, with a JVM's stacks in it, into `folder`.

    Never raises for what cannot be had: that is said in `missing.txt`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(samples_table(recorder.samples()), folder / "samples.parquet", compression="zstd")
    pq.write_table(events_table(recorder.events()), folder / "events.parquet", compression="zstd")
    missing = []
    for host in testbed.topology.hosts if testbed is not None else ():
        assert testbed is not None
        try:
            daemon = testbed.daemon(host.name)
            if daemon is None:
                continue
            if host.role.runs_kafka:
                _stacks(daemon)
            log = testbed.hosts[host.name].run(["cat", daemon.log], timeout_s=_LOG_TIMEOUT_S).stdout
            (folder / f"{host.name}.log").write_text(log, encoding="utf-8")
        except TestbedError as error:
            missing.append(f"{host.name}: {error}")
    if missing:
        (folder / "missing.txt").write_text("\n".join(missing) + "\n", encoding="utf-8")


def _stacks(node: Daemon) -> None:
    """Have the JVM write the stacks of its threads into its log; one that does not run has none."""
    if node.pid() is not None:
        node.signal("QUIT")
