"""The live view in a terminal: a table of the brokers, the move in one line, and the latest changes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from results.render import NOTHING
from testbed.runner.watch import Change, MoveView, WatchReading
from testbed.units import format_duration, format_size

if TYPE_CHECKING:
    from rich.console import RenderableType

HEADER = ("BROKER", "SENDS MB/s", "RECEIVES MB/s", "LEADER MB/s", "FOLLOWER MB/s", "PRODUCE P99")
"""Sent and received bytes with their share of the NIC; throttled replication with its quota."""
CHANGES = 10


def rows(reading: WatchReading) -> list[tuple[str, ...]]:
    """Return one row of `HEADER` for each broker."""
    return [
        (
            f"{broker.host} down" if broker.serves is False else broker.host,
            _of_nic(broker.sent, broker.sends_at_most),
            _of_nic(broker.received, broker.receives_at_most),
            _of_quota(broker.leader_rate, broker.leader_quota),
            _of_quota(broker.follower_rate, broker.follower_quota),
            NOTHING if broker.produce_p99_ms is None else f"{broker.produce_p99_ms:.0f} ms",
        )
        for broker in reading.brokers
    ]


def _of_nic(value: float | None, most: float) -> str:
    return NOTHING if value is None else f"{value / 1e6:.2f} {value / most:4.0%}"


def _of_quota(value: float | None, quota: float | None) -> str:
    shown = NOTHING if value is None else f"{value / 1e6:.2f}"
    return shown if quota is None else f"{shown} of {quota / 1e6:g}"


def move_line(move: MoveView | None) -> str:
    """Return the state of the running reassignments in one sentence."""
    if move is None:
        return "The controller lists no reassignment."
    text = (
        f"{move.partitions_done} of {move.partitions} partitions have moved; "
        f"{format_size(move.lag_bytes, 3)} left to copy"
    )
    if move.stalled:
        return f"{text}; the move has stalled."
    return f"{text}." if move.remaining_s is None else f"{text}, in about {format_duration(round(move.remaining_s))}."


def state_lines(reading: WatchReading) -> list[str]:
    """Return the lines below the table: the move, replicas out of sync, and why the cluster did not answer."""
    if reading.problem:
        return [f"The cluster does not answer: {reading.problem}"]
    under = reading.under_replicated
    sync = (
        f"{under} of {reading.partitions} partitions lack replicas in sync." if under else "All replicas are in sync."
    )
    return [move_line(reading.move), sync]


def renderable(name: str, reading: WatchReading, changes: Iterable[Change]) -> "RenderableType":
    """Return the view for rich's Live. Text from the cluster is shown as it is, never as markup."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"testbed {name}", style="bold"), title_justify="left", box=None, pad_edge=False)
    for index, title in enumerate(HEADER):
        table.add_column(Text(title), justify="left" if index == 0 else "right", no_wrap=True)
    for broker, row in zip(reading.brokers, rows(reading), strict=True):
        table.add_row(*(Text(cell) for cell in row), style="red" if broker.serves is False else None)
    lines = [Text(line, style="red" if reading.problem else "") for line in state_lines(reading)]
    latest = [Text(f"{change.clock}  {change.text}", style="dim") for change in list(changes)[-CHANGES:]]
    return Group(table, Text(""), *lines, Text(""), *latest)
