"""Throttle estimates, monitor readings and throttle status, as text for users and as JSON for programs."""

import math
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from results.contract.texts import counted, plural
from results.render import table
from testbed.reassignment.auto_raise import MonitorEvent, ThrottleRaise
from testbed.reassignment.estimate import BrokerEstimate, ThrottleEstimate
from testbed.reassignment.monitor import BrokerRate, MonitorReading
from testbed.throttle.configs import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from testbed.throttle.duration import Share
from testbed.throttle.recovery import RestoreResult
from testbed.throttle.status import BrokerThrottleStatus, ThrottleStatus
from testbed.units import format_byte_rate, format_duration, format_size

_SHOWN = 60


def estimate_text(estimate: ThrottleEstimate, nic_known: bool) -> str:
    """Return the throttle, the time, the bottleneck, and the time by KIP-73's own formula."""
    if not estimate.lines:
        return "the plan copies nothing: no throttle is needed"
    observed = estimate.observed
    copied = sum(line.share.bytes for line in estimate.lines if line.share.direction == "receive")
    rows = [
        (
            line.share.broker,
            line.share.direction,
            format_size(line.share.bytes, 4),
            _rate(line.share.inbound_bytes_per_s),
            _rate(line.quota_bytes_per_s - line.share.inbound_bytes_per_s),
            "–" if line.room_bytes_per_s is None else _rate(line.room_bytes_per_s),
            format_duration(line.seconds),
            _bottleneck(line),
        )
        for line in estimate.lines
    ]
    head = ("BROKER", "DIRECTION", "TO COPY", "INBOUND", "LEFT OF QUOTA", "NIC LEAVES", "TIME", "")
    known = "" if nic_known else "; what the NICs carry is not known (--nic): nothing says that they can carry it"
    return "\n".join(
        [
            f"throttle {_rate(estimate.throttle_bytes_per_s)} ({estimate.throttle_bytes_per_s} B/s)",
            f"time     {format_duration(estimate.seconds)}, at most {format_duration(estimate.at_most_s)}{known}",
            f"KIP-73   {format_duration(estimate.kip73_seconds)} by its own formula "
            "(cluster averages, quota − inbound)",
            "",
            table(head, rows),
            "",
            f"{len(observed.copies)} of {observed.total_partitions} partitions, {format_size(copied, 4)} to copy. "
            f"Inbound is what producers write to them, once for each throttled replica that receives it, measured over "
            f"{format_duration(observed.measured_s)} as the growth of the leaders' logs.",
            *(f"caution: {caution}" for caution in estimate.cautions),
        ]
    )


def estimate_document(estimate: ThrottleEstimate) -> dict[str, Any]:
    """Return the estimate as JSON; infinite times are null."""
    observed = estimate.observed
    return {
        "possible": True,
        "throttle_bytes_per_s": estimate.throttle_bytes_per_s if estimate.lines else None,
        "seconds": _finite(estimate.seconds),
        "at_most_seconds": _finite(estimate.at_most_s),
        "kip73_seconds": _finite(estimate.kip73_seconds),
        "brokers": [
            {
                **_share(line.share),
                "nic_leaves_bytes_per_s": line.room_bytes_per_s,
                "seconds": _finite(line.seconds),
                "bottleneck": line.is_bottleneck,
                "limited_by": "nic" if line.limited_by_nic else "throttle",
            }
            for line in estimate.lines
        ],
        "partitions": len(observed.copies),
        "partitions_of_cluster": observed.total_partitions,
        "measured_seconds": observed.measured_s,
        "cautions": estimate.cautions,
    }


def event_text(event: MonitorEvent) -> str:
    """Return one or more lines for an event of the monitor."""
    match event:
        case MonitorReading():
            return _reading_text(event)
        case ThrottleRaise():
            on = f"{plural(len(event.brokers), 'broker')}: {', '.join(map(str, event.brokers))}"
            return f"raised the throttle to {_rate(event.throttle_bytes_per_s)} on {on}"
        case RestoreResult():
            return f"restored {plural(len(event.changes), 'rate')} as before the raise"
        case str():
            return event


def event_document(event: MonitorEvent) -> dict[str, Any]:
    """Return one JSON document for an event of the monitor."""
    match event:
        case MonitorReading():
            return {"event": "look", **_reading_document(event)}
        case ThrottleRaise():
            return {"event": "raised", "rate_bytes_per_s": event.throttle_bytes_per_s, "brokers": event.brokers}
        case RestoreResult():
            return {"event": "restored", "changes": [[str(c.resource), c.key, c.original] for c in event.changes]}
        case str():
            return {"event": "note", "text": event}


def state_text(state: ThrottleStatus) -> str:
    """Return every broker with its rates, every topic with its lists, and the remedy for leftover throttles."""
    rows = [
        (broker.id, "no answer: " + broker.why, "")
        if broker.why
        else (broker.id, _set_rate(broker, LEADER_RATE), _set_rate(broker, FOLLOWER_RATE))
        for broker in state.brokers
    ]
    lines = [table(("BROKER", "LEADER RATE", "FOLLOWER RATE"), rows), ""]
    if state.lists:
        shown = [
            (topic, _short(keys.get(LEADER_REPLICAS)), _short(keys.get(FOLLOWER_REPLICAS)))
            for topic, keys in sorted(state.lists.items())
        ]
        lines += [table(("TOPIC", "LEADER REPLICAS", "FOLLOWER REPLICAS"), shown), ""]
    else:
        lines.append("no topic has throttled replicas")
    lines += [
        f"broker {broker.id} has not applied the lists of {', '.join(broker.differs)}"
        for broker in state.brokers
        if broker.differs
    ]
    lines += [f"set by {_owner(journal.owner.pid, journal.owner.alive())}" for journal in state.journals]
    lines.append(f"{counted(len(state.moving), 'partition', 'is')} being reassigned")
    if state.catching_up:
        named = _short(", ".join(map(str, state.catching_up)))
        behind = counted(len(state.catching_up), "other partition", "has")
        lines.append(f"{behind} throttled replicas out of sync: {named}")
    if state.left_behind:
        lines.append("nothing moves: what is set throttles nothing now; `testbed throttle clear` removes it")
    return "\n".join(lines)


def state_document(state: ThrottleStatus) -> dict[str, Any]:
    """Return the throttle status as JSON."""
    return {
        "cluster_id": state.cluster_id,
        "brokers": [
            {
                "id": broker.id,
                "leader_rate_bytes_per_s": broker.rate(LEADER_RATE),
                "follower_rate_bytes_per_s": broker.rate(FOLLOWER_RATE),
                "own": broker.own,
                "default": broker.default,
                "lists_differ": broker.differs,
                "error": broker.why,
            }
            for broker in state.brokers
        ],
        "topics": dict(sorted(state.lists.items())),
        "moving": [str(tp) for tp in state.moving],
        "catching_up": [str(tp) for tp in state.catching_up],
        "left_behind": state.left_behind,
        "journals": [{"id": j.id, "pid": j.owner.pid, "alive": j.owner.alive()} for j in state.journals],
    }


def _reading_text(look: MonitorReading) -> str:
    if look.done:
        return f"done: {plural(look.partitions, 'partition')}" if look.partitions else "nothing is being reassigned"
    left = f"{look.partitions_done} of {look.partitions} partitions done, {format_size(look.lag_bytes, 4)} left"
    rates = "; ".join(
        f"broker {rate.broker} {rate.direction} {_rate(rate.bytes_per_s)}" + _of_quota(rate, look.silent)
        for rate in look.rates
    )
    lines = [f"{left}, {_remaining(look)}", f"  {rates}"]
    if look.stall is not None:
        grows = f", growing by {_rate(look.stall.rate_per_s)}" if look.stall.rate_per_s > 0 else ""
        lines.append(
            f"  STALLED for {format_duration(look.stall.seconds)}: {format_size(look.stall.lag, 4)} left{grows}"
        )
    lines += [
        f"  broker {share.broker} {share.direction}: {_rate(share.inbound_bytes_per_s)} come in, the whole quota: "
        f"never makes progress"
        for share in look.too_low
    ]
    if look.unthrottled:
        named = _short(", ".join(map(str, look.unthrottled)))
        lines.append(f"  {counted(len(look.unthrottled), 'partition', 'moves')} without a throttle: {named}")
    lines += [f"  broker {broker} gives no answer" for broker in look.silent]
    return "\n".join(lines)


def _of_quota(rate: BrokerRate, silent: Collection[int]) -> str:
    if rate.quota_bytes_per_s is not None:
        return f" of {_rate(rate.quota_bytes_per_s)}"
    return " (quota not known)" if rate.broker in silent else " (no quota)"


def _reading_document(look: MonitorReading) -> dict[str, Any]:
    left = look.remaining
    return {
        "done": look.done,
        "partitions": look.partitions,
        "partitions_done": look.partitions_done,
        "lag_bytes": look.lag_bytes,
        "copied_bytes": look.copied_bytes,
        "rates": [asdict(rate) for rate in look.rates],
        "remaining_seconds": left and _finite(left.seconds),
        "remaining_interval": left and [_finite(left.low_s), _finite(left.high_s)],
        "stuck": look.stall
        and {"seconds": look.stall.seconds, "lag_bytes": look.stall.lag, "grows_by_bytes_per_s": look.stall.rate_per_s},
        "too_low": [_share(share) for share in look.too_low],
        "unthrottled": [str(tp) for tp in look.unthrottled],
        "silent": look.silent,
    }


def _remaining(look: MonitorReading) -> str:
    left = look.remaining
    if left is None:
        return "the pace is not known yet"
    if math.isinf(left.seconds):
        return "no end in sight: the lag does not fall"
    return f"{format_duration(left.seconds)} to go ({format_duration(left.low_s)} to {format_duration(left.high_s)})"


def _bottleneck(line: BrokerEstimate) -> str:
    if not line.is_bottleneck:
        return ""
    return "bottleneck (its NIC)" if line.limited_by_nic else "bottleneck"


def _share(share: Share) -> dict[str, Any]:
    return {
        "broker": share.broker,
        "direction": share.direction,
        "bytes": share.bytes,
        "inbound_bytes_per_s": share.inbound_bytes_per_s,
    }


def _set_rate(broker: BrokerThrottleStatus, key: str) -> str:
    rate = broker.rate(key)
    if rate is None:
        return "none"
    return _rate(rate) + ("" if key in broker.own else " (default of all brokers)")


def _owner(pid: int, alive: bool) -> str:
    if alive:
        return f"process {pid} of this machine, which runs and removes it itself"
    return f"process {pid}, which is dead: `testbed reassign recover` restores the configuration before it"


def _short(value: str | None) -> str:
    if value is None:
        return "–"
    return value if len(value) <= _SHOWN else f"{value[: _SHOWN - 1]}…"


def _rate(bytes_per_s: float) -> str:
    return format_byte_rate(bytes_per_s, 4)


def _finite(seconds: float) -> float | None:
    return None if math.isinf(seconds) else seconds
