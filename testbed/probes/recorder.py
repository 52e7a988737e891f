"""The recorder of a run: all samples and events, until the run is over."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from results.contract.schema import Event, Sample
from testbed.errors import TestbedError
from testbed.hosts import Host, Process
from testbed.hosts.host import AGENT_PATH
from testbed.wait import wait_for

STOP_S = 30.0
"""The longest wait for a poller's present call: two requests, each with time to connect and time for its answer."""
INTERVAL_S = 0.99
"""Seconds, a little under one, so that eleven intervals fit into the quota window of 11 s."""


def now_us() -> int:
    """Return µs since the epoch, on the clock that all containers of a machine share."""
    return time.time_ns() // 1000


class Recorder:
    """Collect samples and events from several threads; the failure of a probe is an event, too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: list[Sample] = []
        self._events: list[Event] = []
        self._processes: list[tuple[str, Process, threading.Thread]] = []
        self._stopping = threading.Event()
        self._pollers: list[Poller] = []
        self._left: set[str] = set()
        """The hosts that are removed, or going to be."""
        self._newest: dict[str, int] = {}
        """Host → the time of its agent's last sample."""
        self._trouble: dict[str, str] = {}
        """Host → why it gives no sample at present."""
        self._latest: dict[tuple[str, str, str | None, int | None], float] = {}

    def event(
        self, kind: str, name: str = "", detail: Mapping[str, Any] | None = None, host: str | None = None
    ) -> None:
        """Record an event at the present time."""
        event = Event(now_us(), kind, name, host, dict(detail or {}))
        with self._lock:
            self._events.append(event)

    def add_events(self, events: Iterable[Event]) -> None:
        """Add events that were recorded elsewhere, with their own times."""
        with self._lock:
            self._events.extend(events)

    def add(self, samples: Iterable[Sample]) -> None:
        """Add samples that were measured elsewhere."""
        with self._lock:
            for sample in samples:
                self._samples.append(sample)
                self._latest[sample.host, sample.metric, sample.topic, sample.partition] = sample.value

    def latest(self, host: str, metric: str, topic: str | None = None, partition: int | None = None) -> float | None:
        """Return the newest value of a metric; None while there is none."""
        with self._lock:
            return self._latest.get((host, metric, topic, partition))

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Record a step's begin and end as events, also when it fails."""
        self.event("step", name, {"phase": "begin"})
        try:
            yield
        finally:
            self.event("step", name, {"phase": "end"})

    def wait_for_all(self, *, timeout_s: float = 10.0) -> None:
        """Wait until every watched host has sampled once more. Raise `TestbedError` with the others and the reasons."""
        since = now_us()

        def missing() -> list[str]:
            with self._lock:
                hosts = [host for host, _process, _reader in self._processes]
                late = [host for host in hosts if self._newest.get(host, 0) <= since]
                return [f"{host} ({self._trouble.get(host, 'no sample yet')})" for host in late]

        wait_for(missing, lambda hosts: not hosts, timeout_s, 0.05, "the next sample of every host; missing")

    def watch_host(
        self,
        host: Host,
        *,
        devices: Sequence[str],
        topics: Sequence[str] = (),
        log_dir: str | None = None,
        jmx_port: int | None = None,
        s3_port: int | None = None,
        latency: bool = False,
        cpus: float = 0.0,
        ports: Sequence[int] = (),
    ) -> None:
        """Start the agent on a host and record its samples until `stop`; with `latency`, Kafka's request times, too.

        With `cpus` the agent samples less often where it would use more CPUs than that on average. With `ports` it
        names the connections of the devices' addresses that use none of these.
        """
        config = {
            "interval_s": INTERVAL_S,
            "log_dir": log_dir,
            "topics": list(topics),
            "devices": list(devices),
            "jmx_port": jmx_port,
            "s3_port": s3_port,
            "latency": latency,
            "cpus": cpus,
            "ports": list(ports),
        }
        process = host.spawn(["python3", AGENT_PATH, json.dumps(config)])
        reader = threading.Thread(target=self._read, args=(host.name, process), daemon=True)
        with self._lock:
            self._processes.append((host.name, process, reader))
        reader.start()

    def leave_host(self, host: str) -> None:
        """Stop the agent on a host that is going to be removed; its samples so far stay."""
        with self._lock:
            mine = [each for each in self._processes if each[0] == host]
            self._processes = [each for each in self._processes if each[0] != host]
            self._left.add(host)
        for _host, process, reader in mine:
            process.stop()
            reader.join(timeout=10.0)

    def _read(self, host: str, process: Process) -> None:
        try:
            for line in process.lines():
                answer = json.loads(line)
                if "error" in answer:
                    self._failed(host, answer["error"])
                    continue
                self.add(
                    Sample(answer["t"], host, metric, float(value), topic, partition, label)
                    for metric, topic, partition, label, value in answer["v"]
                )
                with self._lock:
                    self._newest[host] = answer["t"]
                    self._trouble.pop(host, None)
        except (OSError, TypeError, ValueError) as error:
            self._failed(host, f"its agent's line is not a sample: {error}")
        if not self._stopping.is_set() and host not in self._left:
            with self._lock:
                self._trouble.setdefault(host, "its probe ended")
            self.event("note", "probe ended", {}, host)

    def _failed(self, host: str, why: str) -> None:
        """Record why a host gave no sample, once for samples that fail in a row for the same reason."""
        with self._lock:
            known, self._trouble[host] = self._trouble.get(host), why
        if known != why:
            self.event("note", "probe failed", {"error": why}, host)

    def poll(self, name: str, interval_s: float, look: Callable[[], Iterable[Sample]]) -> "Poller":
        """Call `look` every `interval_s` seconds in its own thread, until that poller or the recorder is stopped.

        A call that raises `TestbedError` is recorded as an event, and the next call follows. Any other error is a
        defect of the probe: an event records it, and the poller ends with it. Return the poller.
        """
        poller = Poller(self, name, interval_s, look)
        with self._lock:
            self._pollers.append(poller)
        poller.start()
        return poller

    def stop(self) -> None:
        """End all probes; they add nothing afterwards."""
        self._stopping.set()
        with self._lock:
            processes, pollers = list(self._processes), list(self._pollers)
        for _host, process, _reader in processes:
            process.stop()
        stop_all(pollers)
        for _host, _process, reader in processes:
            reader.join(timeout=10.0)

    def samples(self) -> list[Sample]:
        """Return all samples so far."""
        with self._lock:
            return list(self._samples)

    def drain(self) -> list[Sample]:
        """Return all samples since the last call, and keep none of them: an observation may last for days."""
        with self._lock:
            found, self._samples = self._samples, []
            return found

    def events(self) -> list[Event]:
        """Return all events so far."""
        with self._lock:
            return list(self._events)


class Poller:
    """One regular sampling."""

    def __init__(self, recorder: Recorder, name: str, interval_s: float, look: Callable[[], Iterable[Sample]]) -> None:
        self._recorder, self._name, self._interval_s, self._look = recorder, name, interval_s, look
        self._stopping = threading.Event()
        self._adding = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)

    def start(self) -> None:
        """Start the poller's thread."""
        self._thread.start()

    def end(self) -> None:
        """Make the present call the last one; do not wait for it."""
        self._stopping.set()

    def stop(self) -> None:
        """End the poller after the present call; nothing is added afterwards, also when that call takes longer."""
        self._stopping.set()
        self._thread.join(timeout=STOP_S)
        with self._adding:
            self._closed = True

    def _loop(self) -> None:
        due = time.monotonic()
        while not self._stopping.is_set():
            try:
                found = list(self._look())
            except TestbedError as error:
                self._recorder.event("note", f"{self._name} failed", {"error": str(error)})
                found = []
            except BaseException as error:
                self._recorder.event("note", f"{self._name} ended", {"error": f"{type(error).__name__}: {error}"})
                raise
            with self._adding:
                if not self._closed:
                    self._recorder.add(found)
            due = max(due + self._interval_s, time.monotonic() - self._interval_s)
            self._stopping.wait(max(0.0, due - time.monotonic()))


def stop_all(pollers: Sequence[Poller]) -> None:
    """End pollers together, and wait until each has: a call that waits for a broker holds up no other poller's end."""
    for poller in pollers:
        poller.end()
    for poller in pollers:
        poller.stop()
