"""A load: its processes, from a common start to the stop, and their reports.

with Workload(bootstrap, [ProducerSpec(…), ConsumerSpec(…)], seed, recorder.add, recorder.event) as load:
    load.start()
    …
    result = load.stop()
found = audit(bootstrap, fills, result.written)
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer

from results.contract.document import encode
from results.contract.schema import Sample
from testbed.errors import TestbedError
from testbed.network.fabric import DRIVER
from testbed.wait import WaitTimeout, wait_until
from testbed.workload.child import CLOCK
from testbed.workload.consume import AGAIN_S, LAST_S, POSITION_S
from testbed.workload.outcome import ProcessReports, ProcessResult, WorkloadResult, behind_s, samples
from testbed.workload.produce import transactional_id
from testbed.workload.records import Envelope
from testbed.workload.spec import ConsumerSpec, ProducerSpec, Spec, check

AddSamples = Callable[[list[Sample]], None]
OnEvent = Callable[[str, str, Mapping[str, Any]], None]
"""Kind, name, detail; `Recorder.event` is one."""

START_S = 60.0
_BEGIN_IN_S = 0.1
_ENDS_S = 15.0
_SHOWN = 300
"""Characters of a process's line that are shown."""
_ROOT = Path(__file__).parents[2]


class _Process:
    """One process of the load, and its reports."""

    def __init__(
        self, order: Mapping[str, Any], spec: Spec, add: AddSamples, on_event: OnEvent, enter: Sequence[str]
    ) -> None:
        self.spec, self._add, self._on_event = spec, add, on_event
        self.heard = ProcessReports(spec, order["producer"])
        self.ready = False
        self._stopping = False
        self._said: deque[str] = deque(maxlen=5)
        self._lock = threading.Lock()
        module = "produce" if isinstance(spec, ProducerSpec) else "consume"
        self.popen = subprocess.Popen(
            [*enter, sys.executable, "-m", f"testbed.workload.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A pipe of its own: librdkafka's lines would come within a long report.
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            bufsize=1,
            # Only the parent handles Ctrl-C: it stops the load in order.
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.getenv("PYTHONPATH"))))},
        )
        self._readers = [
            threading.Thread(target=read, name=f"{what} of {spec.name}", daemon=True)
            for what, read in (("reports", self._read), ("errors", self._read_errors))
        ]
        for reader in self._readers:
            reader.start()
        self.send(order)

    def send(self, order: Mapping[str, Any]) -> None:
        """Send an order to the process; do nothing if the process has ended (its end is noticed elsewhere)."""
        assert self.popen.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError), self._lock:
            self.popen.stdin.write(json.dumps(order) + "\n")
            self.popen.stdin.flush()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                self._say(f"its report is cut: {line[:_SHOWN].strip()}")  # the process was killed meanwhile
                continue
            with self._lock:
                self.heard.hear(said)
            self.ready = self.ready or bool(said.get("ready"))
            found = samples(self.spec, said)
            if found:
                self._add(found)
        status = self.popen.wait()
        if not self.heard.final and not self._stopping:
            self._on_event("load.died", self.spec.name, {"status": status, "error": self.trouble()})

    def _read_errors(self) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            self._say(line.strip()[-_SHOWN:])

    def _say(self, line: str) -> None:
        """Keep one of the last lines that are no reports."""
        with self._lock:
            self._said.append(line)

    def trouble(self) -> str:
        """Return the process's error output, if any; all of it if the process has ended."""
        if self.gone():
            for reader in self._readers:
                if reader is not threading.current_thread():
                    reader.join(timeout=_ENDS_S)
        with self._lock:
            return self.heard.error or "; ".join(self._said)

    def gone(self) -> bool:
        return self.popen.poll() is not None

    def newest(self) -> dict[str, Any]:
        with self._lock:
            return dict(self.heard.newest)

    def close_stdin(self) -> None:
        self._stopping = True
        assert self.popen.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError), self._lock:
            self.popen.stdin.close()

    def end(self, timeout_s: float) -> None:
        """Wait for the end of the process, and kill it after `timeout_s` seconds."""
        try:
            self.popen.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        for reader in self._readers:
            reader.join(timeout=_ENDS_S)

    def result(self) -> ProcessResult:
        """Return the result of the process, once it has ended."""
        with self._lock:
            self.heard.error = self.heard.error or ("" if self.heard.final else "; ".join(self._said))
            return self.heard.result()


class Workload:
    """A load that starts once and stops once. Raises `UsageError` with every mistake of the specifications.

    Every process's figures go to `add_samples` once a second, under its name; events go to `on_event`. When this
    process dies, all of the load's processes end at once. `first_producer` is the number of the first producer: two
    loads that write to the same topic need different ones. `others` are the rules of another load's producers whose
    records this load's consumers get; see `envelopes`.

    `networks` has client host → the words that run a command behind its NIC (`Testbed.client_networks`). The processes
    are spread over these hosts in their order. Without any, they use this machine's network.
    """

    def __init__(
        self,
        bootstrap: Sequence[str],
        specs: Sequence[Spec],
        seed: int,
        add_samples: AddSamples,
        on_event: OnEvent = lambda _kind, _name, _detail: None,
        *,
        first_producer: int = 1,
        others: Mapping[int, Envelope] | None = None,
        networks: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        check(specs)
        self._networks = dict(networks or {})
        self._bootstrap, self._specs, self._seed = list(bootstrap), list(specs), seed
        self._add, self._on_event = add_samples, on_event
        self._first = first_producer
        self._others = dict(others or {})
        self._processes: list[_Process] = []
        self._began = False
        self._result: WorkloadResult | None = None

    def __enter__(self) -> "Workload":
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def envelopes(self) -> dict[int, Envelope]:
        """Return the rule of keys and headers of each producer, by the producer's number."""
        numbered = enumerate(self._specs, self._first)
        return {number: spec.envelope for number, spec in numbered if isinstance(spec, ProducerSpec)}

    def start(self, timeout_s: float = START_S) -> None:
        """Start the load; return once each partition has acknowledged every producer and every consumer is in its
        group.

        Raise `TestbedError` naming the process that could not start; no process is left running then.
        """
        hosts: dict[str, str] = {}
        rules = {**self._others, **self.envelopes}
        try:
            for number, (spec, host) in enumerate(zip(self._specs, cycle(self._networks or ("",)), strict=False)):
                order = {
                    "spec": encode(spec),
                    "bootstrap": ",".join(self._bootstrap),
                    "producer": self._first + number,
                    "seed": self._seed + number,
                    "envelopes": [(producer, envelope.keys) for producer, envelope in rules.items()],
                    "parent": os.getpid(),
                    "clock_offset_ns": CLOCK.offset_ns,
                }
                self._processes.append(_Process(order, spec, self._add, self._on_event, self._networks.get(host, ())))
                hosts[spec.name] = host or DRIVER
            self._await_ready(timeout_s)
        except BaseException:
            self.stop()
            raise
        self._began = True
        begin_us = CLOCK.now_us() + int(_BEGIN_IN_S * 1e6)
        for process in self._processes:
            process.send({"do": "go", "begin_us": begin_us})
        self._on_event("load.started", "", {"processes": list(hosts), "hosts": hosts})

    def _await_ready(self, timeout_s: float) -> None:
        def all_ready() -> bool:
            for process in self._processes:
                if process.gone() and not process.ready:
                    raise TestbedError(f"load: {process.spec.name} could not begin: {process.trouble()}")
            return all(process.ready for process in self._processes)

        try:
            wait_until(all_ready, timeout_s, 0.02, "the load's processes")
        except WaitTimeout as error:
            missing = ", ".join(process.spec.name for process in self._processes if not process.ready)
            raise TestbedError(f"load: not ready within {timeout_s:g} s: {missing}") from error

    def mark(self, name: str) -> None:
        """Record an event, with every process's last reported counts."""
        counts = ("due", "sent", "acked", "failed", "in_doubt", "records")
        detail = {
            process.spec.name: {key: value for key, value in process.newest().items() if key in counts}
            for process in self._processes
        }
        self._on_event("load.mark", name, detail)

    def behind_s(self) -> float:
        """Return how many seconds' worth of due records have no outcome, as the producers last reported; the most."""
        return max(
            (behind_s(p.spec, p.newest()) for p in self._processes if isinstance(p.spec, ProducerSpec)), default=0.0
        )

    def pause(self, consumer: str) -> None:
        """Pause a consumer, which stays in its group and lags from now on. Raise KeyError for an unknown one."""
        self._named(consumer).send({"do": "pause"})

    def resume(self, consumer: str) -> None:
        """Resume a paused consumer, which then catches up."""
        self._named(consumer).send({"do": "resume"})

    def _named(self, name: str) -> _Process:
        for process in self._processes:
            if process.spec.name == name:
                return process
        raise KeyError(name)

    def stop(self) -> WorkloadResult:
        """Stop the load once every sent record has an outcome, and consumers have what was acknowledged.

        Return its result, also on a second call. A consumer that lacks records is waited for as `consume.py` says.
        """
        if self._result is not None:
            return self._result
        producers = [process for process in self._processes if isinstance(process.spec, ProducerSpec)]
        others = [process for process in self._processes if not isinstance(process.spec, ProducerSpec)]
        patience_s = _ENDS_S + max((s.give_up_s for s in self._specs if isinstance(s, ProducerSpec)), default=0.0)
        _end(producers, patience_s)
        self._end_open_transactions()
        if self._began:
            members = Counter(spec.group for spec in self._specs if isinstance(spec, ConsumerSpec))
            for process in others:
                spec = process.spec
                if isinstance(spec, ConsumerSpec) and members[spec.group] == 1:  # else another member may have them
                    process.send({"do": "end", "ends": _ends(producers, spec)})
        _end(others, _ENDS_S + LAST_S + 2 * POSITION_S + AGAIN_S)
        self._result = WorkloadResult(tuple(process.result() for process in self._processes))
        if self._processes:
            self._on_event("load.stopped", "", {p.name: _as_document(p) for p in self._result.processes})
        return self._result

    def _end_open_transactions(self) -> None:
        """End the open transactions of dead producers: readers wait until such a transaction is aborted."""
        for number, process in enumerate(self._processes):
            spec = process.spec
            if not isinstance(spec, ProducerSpec) or spec.transaction_s is None or process.heard.final:
                continue
            settings = {
                "bootstrap.servers": ",".join(self._bootstrap),
                "transactional.id": transactional_id(spec.name, self._seed + number),
                "log_level": 3,
                **spec.client,
            }
            try:
                Producer(settings).init_transactions(_ENDS_S)
            except KafkaException as error:
                self._on_event("note", f"{spec.name}: its transaction was not ended", {"error": str(error)})


def _end(processes: Sequence[_Process], patience_s: float) -> None:
    """Stop processes, and wait until they have ended; kill those that have not after `patience_s` seconds."""
    for process in processes:
        process.close_stdin()
    deadline = time.monotonic() + patience_s
    for process in processes:
        process.end(max(0.1, deadline - time.monotonic()))


def _ends(producers: Iterable[_Process], consumer: ConsumerSpec) -> list[tuple[str, int, int]]:
    """Return each partition that a consumer reads with the offset after its last acknowledged record."""
    ends: dict[tuple[str, int], int] = {}
    for process in producers:
        for where, end in process.heard.ends().items():
            ends[where] = max(end, ends.get(where, 0))
    return [(topic, partition, end) for (topic, partition), end in ends.items() if topic in consumer.topics]


def _as_document(process: ProcessResult) -> dict[str, Any]:
    names: Iterable[str] = ("due", "sent", "acked", "failed", "in_doubt", "read", "held", "why", "error", "new_epochs")
    return {name: getattr(process, name) for name in names}
