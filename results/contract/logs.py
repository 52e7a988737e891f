"""Facts of the manifest from the brokers' logs during a run."""

from dataclasses import dataclass
from typing import Literal, get_args

Level = Literal["WARN", "ERROR", "FATAL"]
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True, slots=True)
class LogFinding:
    """Lines of one kind that nothing explains: `count` lines of `host` that differ in numbers and ids at most.

    `ts_us` (µs since the epoch) and `text` are the first one's.
    """

    host: str
    ts_us: int
    level: Level
    logger: str
    text: str
    count: int


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """The end of a Kafka process, in µs since the epoch. The `status` of a signal is 128 plus its number."""

    ts_us: int
    status: int


@dataclass(frozen=True, slots=True)
class HostLog:
    """One host's log over the run. `problem` says why it was not read whole; None when it was.

    `more` counts the kinds of lines that are left out of `findings`, which holds the most severe ones. `terminated_us`
    are the instants (µs since the epoch) at which Kafka logged that a signal ends its process. `ended` has each end of
    the process, also those by the run itself.
    """

    host: str
    problem: str | None = None
    findings: tuple[LogFinding, ...] = ()
    more: int = 0
    terminated_us: tuple[int, ...] = ()
    ended: tuple[ProcessEnd, ...] = ()
