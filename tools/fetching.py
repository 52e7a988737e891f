"""A follower that fetches under a throttle, response by response, and what criteria measure of it. Pure: seeded.

Both brokers keep their quota as Kafka does: a port of its sensor, a check before each fetch, then one whole response.
`./run exec python -m tools.fetching` prints where the steady mean and the ratio of Kafka's byte-rate lie over random
response times, healthy and leaking. `docs/throttle-bound.md` derives the same intervals.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from results.contract.move import WINDOW_SAMPLES
from results.criteria.quantities import US
from results.criteria.sample_series import Floats, Series
from results.criteria.sensor import QuotaSensor, predicted, readings
from results.criteria.windows import windows

MIB = 1 << 20
HEADERS = 62.0
"""Bytes that a leader records of a response without listed partitions."""
SAMPLING_S = 0.99
WARMUP_S, TAIL_S, WINDOW_S = 12.0, 5.0, 11.0


@dataclass(frozen=True, slots=True)
class Fetching:
    """A throttled copy by one fetcher. A broker that leaks by 0.02 records bytes ÷ 1.02.

    A response takes its bytes ÷ `line_bytes_per_s` and `delay_s`, drawn from an exponential distribution; now and then
    the follower pauses. With `follows_more` a fetch without the listed partitions waits at the leader, which records
    the headers of its answer; else the follower waits by itself. `torn` is the part of a response that the log does not
    take: it is fetched again. A broker leaks only in the seconds `between`. Both brokers let pass `over` more than the
    quota in these seconds, and record all of it. `leader_window` and `follower_window` are the samples of
    their quota windows. With `filled` both checks divide by a full window from the first response on, as Kafka's `Rate`
    does and its `SimpleRate` does not.
    """

    quota: float = 10e6
    total: float = 520e6
    response: float = MIB
    backoff_s: float = 0.05
    line_bytes_per_s: float = 46e6
    delay_s: float = 0.005
    pause_s: float = 0.2
    pauses_per_s: float = 0.05
    torn: float = 0.008
    partition: float = 5.2e6
    partition_max: float = MIB
    follows_more: bool = True
    leader_leak: float = 0.0
    follower_leak: float = 0.0
    between: tuple[float, float] = (0.0, math.inf)
    over: float = 0.0
    leader_window: int = WINDOW_SAMPLES
    follower_window: int = WINDOW_SAMPLES
    filled: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Copied:
    """What happened: when bytes landed in the log, and what each broker's sensor recorded, in seconds and bytes.

    `fetched` are the responses as they came, with what the log did not take. `checked` is when each broker checked its
    quota, where a response is worth more than a second of it: expired samples begin again then.
    """

    landed: tuple[Floats, Floats]
    fetched: tuple[Floats, Floats]
    recorded: dict[str, tuple[Floats, Floats]]
    windows: dict[str, int]
    checked: dict[str, Floats]

    def log(self, at: Floats) -> Floats:
        """Return the log's bytes at these instants."""
        return _sums(self.landed, at)

    def fetched_by(self, at: float) -> float:
        """Return the bytes that came until then, also those that the log did not take."""
        return float(_sums(self.fetched, np.array([at]))[0])

    def byte_rate(self, side: str, at: Floats) -> Floats:
        """Return what the broker of a side, *leader* or *follower*, reports as its byte-rate."""
        t, sizes = self.recorded[side]
        checked = self.checked[side]
        polls = (at * US).astype(np.int64)
        read = np.union1d(polls, (checked[checked < at.max(initial=0.0)] * US).astype(np.int64))
        found = np.array(list(readings(t * US, sizes, read, QuotaSensor(self.windows[side]))))
        return np.asarray(found[np.searchsorted(read, polls)])

    def byte_rate_at(self, side: str, at: float) -> float:
        """Return the byte-rate at one instant."""
        return float(self.byte_rate(side, np.array([at]))[0])


def copied(fetching: Fetching) -> Copied:
    """Return how a move is copied."""
    f, rng = fetching, np.random.default_rng(fetching.seed)
    samples = {"leader": f.leader_window, "follower": f.follower_window}
    sensors = {side: QuotaSensor(count) for side, count in samples.items()}
    leaks = {"leader": 1 + f.leader_leak, "follower": 1 + f.follower_leak}
    events: dict[str, list[tuple[float, float]]] = {"leader": [], "follower": []}
    checks: dict[str, list[float]] = {"leader": [], "follower": []}
    landed: list[tuple[float, float]] = []
    fetched: list[tuple[float, float]] = []
    now, total = float(rng.uniform(0.2, 0.6)), 0.0

    def wrong(at: float) -> bool:
        return f.between[0] <= at < f.between[1]

    def record(side: str, at: float, size: float) -> None:
        counted = size / leaks[side] if wrong(at) else size
        sensors[side].record(at * US, counted)
        events[side].append((at, counted))

    def held(side: str, at: float) -> bool:
        if f.response > f.quota:
            checks[side].append(at)
        counted, seconds = sensors[side].state(at * US)
        least_s = samples[side] - 1 if f.filled else 0
        return counted / max(seconds, least_s) > f.quota * (1 + f.over if wrong(at) else 1)

    while total < f.total:
        if rng.random() < f.pauses_per_s * f.backoff_s:
            now += float(rng.uniform(0, 2 * f.pause_s))
        if held("follower", now):
            now += f.backoff_s + float(rng.exponential(f.delay_s / 2))
            if f.follows_more:
                record("leader", now, HEADERS)
            continue
        asked = now + float(rng.exponential(f.delay_s / 4))
        if held("leader", asked):
            now = asked + f.backoff_s + float(rng.exponential(f.delay_s / 2))
            record("leader", now, HEADERS)
            continue
        record("leader", asked, f.response)
        now = asked + f.response / f.line_bytes_per_s + float(rng.exponential(f.delay_s))
        for size in _pieces(f, total):
            kept = min(size * (1 - 2 * f.torn * float(rng.random())), f.total - total)
            landed.append((now, kept))
            fetched.append((now, size))
            total += kept
            record("follower", now, size)
            now += float(rng.exponential(f.delay_s / 2))
    recorded = {side: _columns(found) for side, found in events.items()}
    checked = {side: np.array(found) for side, found in checks.items()}
    return Copied(_columns(landed), _columns(fetched), recorded, samples, checked)


def _sums(events: tuple[Floats, Floats], at: Floats) -> Floats:
    t, sizes = events
    sums = np.concatenate([[0.0], np.cumsum(sizes)])
    return np.asarray(sums[np.searchsorted(t, at, side="right")])


def _pieces(fetching: Fetching, total: float) -> list[float]:
    """Return what a response has of each partition; the follower records them one after the other.

    A partition has at most `partition_max` of it; where one partition's log ends, the next partition's begins.
    """
    left, pieces = fetching.response, []
    ends = fetching.partition - total % fetching.partition
    while left > 0:
        size = min(left, fetching.partition_max, ends)
        pieces.append(size)
        left, ends = left - size, fetching.partition
    return pieces


def _columns(found: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    t, sizes = zip(*found, strict=True)
    return np.array(t), np.array(sizes)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the criteria would compute: fractions of the quota, and Kafka's byte-rate ÷ its prediction."""

    mean: float
    ratios: dict[str, float]


def seen(fetching: Fetching) -> Seen | None:
    """Return the measures of a move that is sampled as the agent samples; None without a steady window."""
    found = copied(fetching)
    rng = np.random.default_rng(fetching.seed + 1)
    end = float(found.landed[0][-1])
    at = np.arange(float(rng.uniform(0, SAMPLING_S)), end + 1, SAMPLING_S)
    at = np.sort(at + rng.normal(0, 0.004, len(at)))
    growth = Series((at * US).astype(np.int64), (at * US).astype(np.int64), found.log(at))
    steady = (at >= WARMUP_S) & (at <= end - TAIL_S)
    part = Series(growth.t[steady], growth.t[steady], growth.value[steady])
    if len(part) < 2 or at[steady][-1] - at[steady][0] < WINDOW_S:
        return None
    ratios = {}
    for side in ("leader", "follower"):
        polls = growth.t[steady] + (0 if side == "follower" else 300_000)
        likely = float(np.mean(predicted(growth, polls, fetching.response)))
        if side == "leader":
            likely = (likely + float(np.mean(predicted(growth, polls, fetching.response, empty=True)))) / 2
        byte_rate = float(np.mean(found.byte_rate(side, polls / US)))
        ratios[side] = byte_rate / likely / (1 + fetching.torn)
    return Seen(float(np.mean(windows(part, WINDOW_S).rate)) / fetching.quota, ratios)


LEAKS: dict[str, Callable[[Fetching, float], Fetching]] = {
    "both": lambda f, leak: replace(f, leader_leak=leak, follower_leak=leak),
    "leader": lambda f, leak: replace(f, leader_leak=leak),
    "follower": lambda f, leak: replace(f, follower_leak=leak),
}


def main() -> None:
    """Print least and most of each measure over many seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    seeds = parser.parse_args().seeds
    print(f"{'quota':>6} {'leak':>13}  {'mean ÷ quota':>15}  {'leader ratio':>15}  {'follower ratio':>15}")
    for quota in (2e6, 5e6, 10e6, 20e6):
        base = Fetching(quota=quota, total=52 * quota)
        cases = [("none", base)] + [
            (f"{name} {leak:.0%}", leaking(base, leak)) for leak in (0.02, 0.05) for name, leaking in LEAKS.items()
        ]
        for name, case in cases:
            rows = [row for seed in range(seeds) if (row := seen(replace(case, seed=seed)))]
            columns = [[row.mean for row in rows]]
            columns += [[row.ratios[side] for row in rows] for side in ("leader", "follower")]
            shown = "  ".join(f"{min(column):.4f} - {max(column):.4f}" for column in columns)
            print(f"{quota / 1e6:>6g} {name:>13}  {shown}")


if __name__ == "__main__":
    main()
