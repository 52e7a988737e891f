"""A soak: moves back and forth under load and faults, in rounds, and what the driver and the hosts use meanwhile."""

import csv
import ctypes
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from testbed.faults import Faults, parse_fault
from testbed.kafka.types import TopicPartition
from testbed.paths import data_dir, state_dir
from testbed.provision.testbed import Testbed
from testbed.reassignment.driver import Driver
from testbed.reassignment.plan import Plan
from testbed.throttle.journal import JournalFolder
from testbed.workload.preload import audit, preload
from testbed.workload.producer_epochs import reader
from testbed.workload.records import Fill, Recipe
from testbed.workload.spec import ConsumerSpec, ProducerSpec
from testbed.workload.workload import Workload

PARTITIONS, RECORDS, RECORD_BYTES = 6, 2000, 1024
THROTTLE, PRODUCED = 4_000_000, 200_000.0
FAULT_S, MOVE_S, AUDIT_S = 2.0, 120.0, 60.0
DELETED_S = 60.0
"""`file.delete.delay.ms`, Kafka's default: for so long a deleted topic's logs stay on the disk."""
FAULTS = (
    "nic-rate host=b2 rate=50mbit",
    "broker-stall host=b3 pause=500ms every=1s",
    "cpu-limit host=b2 cpus=0.5",
    "nic-cut hosts=b2 peers=b3 direction=transmit",
    "quota-alter brokers=b1,b2,b3 rate=2MB/s",
    "client-stampede host=b3 brokers=b1,b2 connections=50 requests=50 lasts=60s",
    "broker-pause host=b3",
    "memory-limit host=b3 memory=1GiB",
)


@dataclass(frozen=True, slots=True)
class Usage:
    """What is used at one time: of the driver, of the brokers together, and on disk."""

    at_s: float
    round: int
    driver_rss_bytes: int
    driver_handles: int
    driver_threads: int
    brokers_rss_bytes: int
    brokers_handles: int
    brokers_disk_bytes: int
    state_files: int
    state_bytes: int
    containers: int


@dataclass(frozen=True, slots=True)
class Round:
    """What one round moved, and the account of its records; `sent_again`, see `Audit`."""

    number: int
    moves: int
    faults: tuple[str, ...]
    acked: int
    found: int
    lost: int
    duplicated: int
    reordered: int
    corrupt: int
    sent_again: int
    complaints: tuple[str, ...] = ()
    new_epochs: tuple[str, ...] = ()

    def problems(self) -> list[str]:
        """Return what the brokers did wrong, one line each. A client may send a record again under a new epoch."""
        repeats = self.duplicated + self.reordered
        found = [
            (self.lost, f"{self.lost} of {self.acked} records lost"),
            (self.found < self.acked or not self.acked, f"{self.found} of {self.acked} records found"),
            (self.corrupt, f"{self.corrupt} records corrupt"),
            (repeats != self.sent_again, f"{repeats} records twice or late, {self.sent_again} sent again"),
        ]
        return [f"round {self.number}: {text}: {'; '.join(self.complaints)}" for wrong, text in found if wrong]


class Soak:
    """Rounds on a testbed of three brokers; `usage` and `rounds` grow while they run."""

    def __init__(self, testbed: Testbed, say: Callable[[str], None] = print) -> None:
        self._testbed, self._say = testbed, say
        self._begun = time.monotonic()
        self.usage: list[Usage] = []
        self.rounds: list[Round] = []

    def run(self, seconds: float) -> None:
        """Begin rounds for so long; the last one ends later. At least three, since the first one warms up."""
        while time.monotonic() - self._begun < seconds or len(self.rounds) < 3:
            self.rounds.append(self._round(len(self.rounds)))
            self.usage.append(self._look())
            self._say(f"{self.usage[-1]} {self.rounds[-1]}")

    def _round(self, number: int) -> Round:
        topic, testbed = f"soak-{number}", self._testbed
        partitions = tuple(range(PARTITIONS))
        with testbed.admin() as admin:
            homes = {n: [1 + n % 3, 1 + (n + 1) % 3] for n in partitions}
            admin.create_topic(topic, homes, {"min.insync.replicas": "1"})
            fill = Fill(topic, partitions, RECORDS, Recipe(RECORD_BYTES, number))
            preload(testbed.bootstrap, [fill])
            specs = [
                ProducerSpec("producer-1", topic, partitions, PRODUCED),
                ConsumerSpec("consumer-1", (topic,), f"readers-{number}", from_beginning=True),
            ]
            moves, done = 0, []
            with Workload(testbed.bootstrap, specs, number + 1, lambda _samples: None) as load:
                load.start()
                away = {TopicPartition(topic, n): (1 + (n + 1) % 3, 1 + (n + 2) % 3) for n in partitions}
                back = {TopicPartition(topic, n): tuple(homes[n]) for n in partitions}
                for targets in (away, back):
                    fault = FAULTS[(2 * number + moves) % len(FAULTS)]
                    self._move(admin, Plan(targets), fault)
                    moves, done = moves + 1, [*done, fault]
                result = load.stop()
            batches = reader(testbed, admin)
            found = audit(testbed.bootstrap, [fill], result.written, patience_s=AUDIT_S, batches=batches)
            admin.delete_topic(topic)
        return Round(
            number,
            moves,
            tuple(done),
            found.expected,
            found.found,
            found.lost,
            found.duplicated,
            found.reordered,
            found.corrupt,
            found.sent_again,
            found.complaints,
            tuple(reason for process in result.processes for reason in process.new_epochs),
        )

    def _move(self, admin: object, plan: Plan, fault: str) -> None:
        """Move under the throttle; the fault is there for its first seconds."""
        faults = Faults(self._testbed)
        failed: list[BaseException] = []

        def inject() -> None:
            try:
                with faults.injected(parse_fault(fault)):
                    time.sleep(FAULT_S)  # the fault's own length
            except BaseException as error:  # noqa: BLE001 - raised by the caller below
                failed.append(error)

        with Driver(admin, JournalFolder()) as driver:  # type: ignore[arg-type]
            driver.execute(plan, THROTTLE)
            injecting = threading.Thread(target=inject)
            injecting.start()
            driver.follow(timeout_s=MOVE_S)
            injecting.join()
        if failed:
            raise failed[0]

    def _look(self) -> Usage:
        # What was freed is given back first: glibc keeps it in its arenas, as much as ever was in use in each.
        ctypes.CDLL(None).malloc_trim(0)
        hosts = self._testbed.hosts
        ask = (
            "p=$(cat /run/kafka.pid); awk '/^VmRSS/ {print $2}' /proc/$p/status; ls /proc/$p/fd | wc -l; "
            "du -sb /var/lib/kafka | cut -f 1"
        )
        told = [[int(line) for line in host.run(ask).stdout.split()] for host in hosts.values()]
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        files = [path for root in (state_dir(), data_dir()) for path in root.rglob("*") if path.is_file()]
        return Usage(
            round(time.monotonic() - self._begun, 1),
            len(self.rounds),
            1024 * int(status["VmRSS"].split()[0]),
            sum(1 for _ in Path("/proc/self/fd").iterdir()),
            int(status["Threads"]),
            1024 * sum(each[0] for each in told),
            sum(each[1] for each in told),
            sum(each[2] for each in told),
            len(files),
            sum(path.stat().st_size for path in files),
            len(self._testbed.engine.containers(self._testbed.name)),
        )


def growth(values: Sequence[float]) -> float:
    """The share by which the last third's median exceeds that of the third before it; 0 when it is lower."""
    third = max(1, len(values) // 3)
    before, after = values[-2 * third : -third] or values[:1], values[-third:]
    return max(0.0, statistics.median(after) / max(1, statistics.median(before)) - 1)


def disk_per_round(usage: Sequence[Usage]) -> list[float]:
    """Return the brokers' disk divided by the rounds whose logs are still there: those that ended in `DELETED_S`.

    How many these are depends on how fast the machine is, and that changes within two hours.
    """
    return [
        each.brokers_disk_bytes / sum(each.at_s - DELETED_S < other.at_s <= each.at_s for other in usage)
        for each in usage
    ]


def write_csv(usage: Iterable[Usage], path: Path) -> None:
    """Write a line for each round."""
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(Usage)])
        writer.writeheader()
        writer.writerows(asdict(each) for each in usage)


PANELS = (
    ("driver, MB", "driver_rss_bytes", 1e6),
    ("driver, handles", "driver_handles", 1),
    ("driver, threads", "driver_threads", 1),
    ("brokers, MB", "brokers_rss_bytes", 1e6),
    ("brokers, handles", "brokers_handles", 1),
    ("brokers, MB on disk", "brokers_disk_bytes", 1e6),
    ("state and store, kB", "state_bytes", 1e3),
)
WIDTH, HEIGHT, LEFT = 640, 84, 150


def plot(usage: Sequence[Usage]) -> str:
    """The SVG of every quantity over time, each from zero."""
    end = max(each.at_s for each in usage) or 1.0
    parts = []
    for number, (title, name, unit) in enumerate(PANELS):
        values = [getattr(each, name) / unit for each in usage]
        top, base = max(values) * 1.15 or 1.0, (number + 1) * HEIGHT - 18
        points = " ".join(
            f"{LEFT + (WIDTH - LEFT - 70) * each.at_s / end:.1f},{base - (HEIGHT - 30) * value / top:.1f}"
            for each, value in zip(usage, values, strict=True)
        )
        parts.append(
            f'<text x="4" y="{base - 22}">{title}</text>'
            f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - 70}" y2="{base}" stroke="#999"/>'
            f'<polyline points="{points}" fill="none" stroke="#1f6fb2" stroke-width="1.5"/>'
            f'<text x="{WIDTH - 64}" y="{base - 22}">{values[-1]:.0f}</text>'
        )
    height = len(PANELS) * HEIGHT + 16
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}'
        f'<text x="{LEFT}" y="{height - 4}">0 to {end / 60:.0f} minutes; each panel begins at zero</text></svg>\n'
    )
