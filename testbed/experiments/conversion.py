"""How many bytes a NIC carries for each byte of log: measured by an unthrottled transfer before the move."""

from collections.abc import Sequence

from results.contract.schema import Sample
from testbed.experiments.experiment import Context
from testbed.kafka.admin import Admin
from testbed.probes.recorder import now_us
from testbed.reassignment.driver import Driver
from testbed.reassignment.plan import Plan
from testbed.throttle.journal import JournalFolder

TIMEOUT_S = 60.0


def calibrate(context: Context, admin: Admin, plan: Plan, topic: str, source: str, target: str) -> float | None:
    """Move `plan` without a throttle and return the conversion factor.

    Raises `DriverError` when it does not end, `KafkaError` when it is refused; what has not arrived is cancelled then.
    """
    recorder = context.recorder
    recorder.wait_for_all()
    begun = now_us()
    recorder.event("calibration.started", topic)
    with Driver(admin, JournalFolder(), cancel_on_error=True) as driver:
        driver.execute(plan, None)
        driver.follow(timeout_s=TIMEOUT_S, interval_s=0.2)
    ended = now_us()
    recorder.event("calibration.done", topic)
    recorder.wait_for_all()
    return conversion_factor(
        recorder.samples(), source=source, target=target, topic=topic, begun_us=begun, ended_us=ended
    )


def conversion_factor(
    samples: Sequence[Sample], *, source: str, target: str, topic: str, begun_us: int, ended_us: int
) -> float | None:
    """NIC bytes per byte of log, over a transfer of `topic` from `source` to `target`. Pure.

    Between the last samples before it began and the first after it ended, sent bytes of the source's NIC ÷ growth
    of the target's log. None when the samples do not enclose the transfer, or nothing was transferred.
    """
    sent = _enclosing(
        [(s.ts_us, s.value) for s in samples if s.host == source and s.metric == "nic.tx.bytes"], begun_us, ended_us
    )
    logs: dict[int, float] = {}
    for sample in samples:
        if sample.host == target and sample.metric == "nic.rx.bytes":
            logs.setdefault(sample.ts_us, 0.0)  # before its first replica exists a host has no log of the topic: 0
        if sample.host == target and sample.metric == "log.bytes" and sample.topic == topic:
            logs[sample.ts_us] = logs.get(sample.ts_us, 0.0) + sample.value
    grown = _enclosing(sorted(logs.items()), begun_us, ended_us)
    if sent is None or grown is None or grown <= 0:
        return None
    return sent / grown


def _enclosing(series: Sequence[tuple[int, float]], begun_us: int, ended_us: int) -> float | None:
    """The growth between the last point at or before `begun_us` and the first at or after `ended_us`."""
    before = [value for ts, value in series if ts <= begun_us]
    after = [value for ts, value in series if ts >= ended_us]
    return after[0] - before[-1] if before and after else None
