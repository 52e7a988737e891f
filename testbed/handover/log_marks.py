"""Marks of handovers in a broker's log: the broker closes and opens partitions on shared storage. Pure.

Some release from 2024 on writes each mark, but not every release does. The parser skips all other lines. A step without
a mark is unknown.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from testbed.kafka.types import TopicPartition
from testbed.probes.log_entries import LogEntry

Kind = Literal["transition", "deleting", "stream-closed", "closed", "meta-opened", "meta-loaded", "loaded", "recovered"]

_TRANSITION = re.compile(r"Transitioning partition\(s\) info: (.*)", re.DOTALL)
_DELETING = re.compile(r"Deleting (\d+) partition\(s\)\.")
_CLOSED = re.compile(r"partition (\S+)-(\d+) is closed, cost (\d+) ?ms")
_ELASTIC = re.compile(r"\[ElasticLog partition=(\S+)-(\d+) epoch=(\d+)\]\s+(.*)", re.DOTALL)
_META = re.compile(r"(?:opened existing|created(?: a new)?) meta stream\b(.*)", re.DOTALL)
_CLEAN = re.compile(r"cleanedShutdown=(true|false)")
_AWAITED = re.compile(r"awaitCostMs=(\d+)")
_TP = re.compile(r"([A-Za-z0-9._-]+)-(\d+)(?=[\s=,\]})]|$)")


@dataclass(frozen=True, slots=True)
class HandoverMark:
    """One mark of a handover. `tp` is None if the line names no one partition; `tps` are all that it names.

    `ms` is the logged duration; `clean` whether the broker closed the partition in order; `epoch` the leader epoch.
    """

    host: str
    ts_us: int
    kind: Kind
    said: str
    tp: TopicPartition | None = None
    tps: frozenset[TopicPartition] = frozenset()
    ms: int | None = None
    clean: bool | None = None
    epoch: int | None = None


def marks(host: str, entries: Iterable[LogEntry]) -> Iterator[HandoverMark]:
    """Return the marks in a host's log, in order."""
    found = (_mark(host, entry.ts_us, entry.message) for entry in entries)
    return (mark for mark in found if mark is not None)


def _mark(host: str, ts_us: int, text: str) -> HandoverMark | None:
    if found := _ELASTIC.search(text):
        topic, number, epoch, rest = found.groups()
        return _elastic(host, ts_us, TopicPartition(topic, int(number)), int(epoch), rest.strip())
    if found := _CLOSED.search(text):
        topic, number, ms = found.groups()
        return HandoverMark(host, ts_us, "closed", found[0], TopicPartition(topic, int(number)), ms=int(ms))
    if found := _TRANSITION.search(text):
        tps = frozenset(TopicPartition(topic, int(number)) for topic, number in _TP.findall(found[1]))
        return HandoverMark(host, ts_us, "transition", "Transitioning partition(s) info", tps=tps)
    if found := _DELETING.search(text):
        return HandoverMark(host, ts_us, "deleting", found[0])
    return None


def _elastic(host: str, ts_us: int, tp: TopicPartition, epoch: int, text: str) -> HandoverMark | None:
    """Return the mark in a line of one partition's log, or None."""
    if text == "log closed":
        return HandoverMark(host, ts_us, "stream-closed", text, tp, epoch=epoch)
    if found := _META.match(text):
        awaited = _AWAITED.search(found[1])
        return HandoverMark(host, ts_us, "meta-opened", text, tp, ms=int(awaited[1]) if awaited else None, epoch=epoch)
    if text.startswith("loaded partition meta:"):
        clean = _CLEAN.search(text)
        return HandoverMark(
            host, ts_us, "meta-loaded", text, tp, clean=None if clean is None else clean[1] == "true", epoch=epoch
        )
    if text.startswith(("loaded log meta:", "loaded leader epoch checkpoint with")):
        return HandoverMark(host, ts_us, "loaded", text[:80], tp, epoch=epoch)
    if text.startswith("[UNCLEAN_SHUTDOWN] recover"):
        return HandoverMark(host, ts_us, "recovered", text, tp, clean=False, epoch=epoch)
    return None
