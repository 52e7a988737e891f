"""A run of a move without a throttle, in memory: two brokers and a store whose NICs count what is said here."""

from dataclasses import dataclass, replace

from results.contract.live_load import LiveAudit, LiveLoad, LoadProcess
from results.contract.logs import HostLog
from results.contract.manifest import Differences, Done, Facts, NicMeasurement, Records, new_run_id
from results.contract.relocation import ColdRead, Relocation, Sent
from results.contract.schema import Event, Sample, events_table, samples_table
from tests.results.synthetic import EPOCH, plain_run, us

NIC_BPS = 200_000_000
PAYLOAD = NIC_BPS * 1448 / 1514 / 8
BROKERS, STORES = ("b1", "b2"), ("s1",)
F = 1.05
PRODUCED, UPLOADED = 1.0e6, 1.1e6
"""NIC bytes a second that the load alone costs: into the brokers, and out of them into the store."""
BEFORE_S, AFTER_S = 12, 15


@dataclass(frozen=True)
class Told:
    """What happens; `seconds` is how long the move takes, `copied` NIC bytes that b1 sends b2 in it.

    `uploaded` NIC bytes are what b1 sends the store in the ten seconds from the move's start on, beyond the load's.
    """

    storage: str = "disk"
    total: int = 300_000_000
    local: int | None = 300_000_000
    seconds: float = 13.2
    copied: float = 300_000_000 * F
    uploaded: float = 0.0
    from_store: float = 0.0
    gets: float = 0.0
    partitions: int = 10
    slow_until: float = 4.0
    slow_us: int = 900_000
    done: bool = True
    lost: int = 0
    gap: tuple[float, float] | None = None
    counted: bool = True
    cold: ColdRead | None = None
    device: float | None = 0.0
    f: float | None = F
    busy: float = 0.3


def progress(told, t):
    """How much of the move has happened by then, 0 to 1."""
    return min(1.0, max(0.0, t / told.seconds))


def relocated(token="reloc0", experiment="s3-reassign", told=None):
    """Manifest, samples and events."""
    told = told or Told()
    manifest = replace(
        plain_run().manifest,
        run_id=new_run_id(experiment, EPOCH, token),
        experiment=experiment,
        parameters={"storage": told.storage},
        move=None,
        nics=tuple(
            NicMeasurement(host, "eth1", way, NIC_BPS, PAYLOAD, 1.0, 2.0)
            for host in (*BROKERS, *STORES)
            for way in ("transmit", "receive")
        ),
        facts=facts(told),
        relocation=Relocation(
            told.storage, BROKERS, STORES, (Sent("b1", "b2", told.partitions, told.total, told.local),), told.f, 1e6,
            cold=told.cold,
        ),
    )  # fmt: skip
    events = [Event(us(-BEFORE_S), "load.before", "load"), Event(us(0), "move.started", "move")]
    if told.done:
        events.append(Event(us(told.seconds), "move.done", "move"))
    if told.cold:
        events += [Event(us(-1.0), "cold.started", "cold"), Event(us(told.seconds + 3.0), "cold.done", "cold")]
    return manifest, samples_table(samples(told)), events_table(events)


def facts(told):
    held = LoadProcess("producer-1", "producer", 1e6, 1000, 1000, 1000, 0, 0, True)
    audit = LiveAudit("producer-1", 1000, 1000 - told.lost, told.lost, 0, 0, 0, True)
    return Facts(
        records=Records(73_000, 73_000, 0, 0, 0),
        leaders=Differences(True),
        done=Done(told.done, "seen" if told.done else "still being reassigned"),
        logs=tuple(HostLog(host) for host in BROKERS),
        live=LiveLoad((held,), (audit,)),
    )


def samples(told):
    found = []
    for number in range(round((BEFORE_S + told.seconds + AFTER_S) / 0.99)):
        t = -BEFORE_S + 0.99 * number
        if told.gap and told.gap[0] < t < told.gap[1]:
            continue
        part, on = progress(told, t), t + BEFORE_S
        stored = UPLOADED * on + told.uploaded * min(1.0, max(0.0, t / 10.0))
        counted = {
            ("b1", "rx"): PRODUCED * on, ("b1", "tx"): stored + told.copied * part,
            ("b2", "rx"): told.copied * part + told.from_store * part, ("b2", "tx"): 1000.0 * on,
            ("s1", "rx"): stored, ("s1", "tx"): 2000.0 * on + told.from_store * part,
        }  # fmt: skip
        found += [
            Sample(us(t), host, f"nic.{way}.bytes", value, label="eth1") for (host, way), value in counted.items()
        ]
        found += [Sample(us(t), "machine", "cpu.busy", told.busy), Sample(us(t), "machine", "cpu.steal", 0.0)]
        found.append(Sample(us(t), "driver", "move.in_flight", 0.0 if part >= 1 or t < 0 else float(told.partitions)))
        if told.counted:
            found.append(Sample(us(t), "s1", "s3.requests", round(0.5 * on), label="PutObject"))
            if part > 0:  # it is there from the first request on
                found.append(Sample(us(t), "s1", "s3.requests", told.gets * part, label="GetObject"))
        if told.device is not None:
            found += [Sample(us(t), host, "io.read_bytes", told.device / 2 * part) for host in BROKERS]
    return found + acknowledged(told)


def acknowledged(told):
    """Each second 100 records in 4 ms; 5 of them in `slow_us` while the clients see the move."""
    found = []
    for second in range(-BEFORE_S, round(told.seconds) + AFTER_S):
        slow = 5 if 0 <= second < told.slow_until else 0
        at = us(second + 0.4)
        found.append(Sample(at, "producer-1", "client.produce.latency", 100.0 - slow, label="4095"))
        if slow:
            found.append(Sample(at, "producer-1", "client.produce.latency", float(slow), label=str(told.slow_us)))
        found.append(Sample(at, "producer-1", "client.produce.acked", 100.0 * (second + BEFORE_S + 1)))
    return found


TIERED = Told(
    storage="tiered",
    local=20_000_000,
    seconds=2.4,
    copied=20_000_000 * F,
    from_store=400_000.0,
    gets=20.0,
    slow_until=2.0,
)
STREAMS = Told(storage="automq", local=0, seconds=2.0, copied=0.0, gets=40.0)
COLD = ColdRead("cold-1", 73_000, 300_000_000, 300_000_000, "device")
