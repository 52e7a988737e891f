"""The bound of docs/throttle-bound.md, tried against a port of Kafka's SampledStat and SimpleRate.

Times are in ms, as in Kafka; sizes in bytes.
"""

import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

import pytest

SAMPLES, SAMPLE_MS = 11, 1000
WINDOW_MS = SAMPLES * SAMPLE_MS
QUOTA = 10_000  # bytes a millisecond: 10 MB/s
RESPONSE = 1 << 20


@dataclass
class Sample:
    start: int
    last: int
    value: int = 0

    def reset(self, now: int) -> None:
        self.start, self.last, self.value = now, now, 0


@dataclass
class SimpleRate:
    """SampledStat, WindowedSum and SimpleRate with 11 samples of 1 s, and a twelfth that overlaps."""

    samples: list[Sample] = field(default_factory=list)
    current: int = 0

    def record(self, value: int, now: int) -> None:
        if not self.samples:
            self.samples.append(Sample(now, now))
        if now - self.samples[self.current].start >= SAMPLE_MS:
            self.current = (self.current + 1) % (SAMPLES + 1)
            if self.current == len(self.samples):
                self.samples.append(Sample(now, now))
            else:
                self.samples[self.current].reset(now)
        sample = self.samples[self.current]
        sample.value += value
        sample.last = now

    def exceeded(self, now: int) -> bool:
        """What isQuotaExceeded answers: is sum / elapsed above the quota?"""
        for sample in self.samples:
            if now - sample.last >= WINDOW_MS:
                sample.reset(now)
        if not self.samples:
            self.samples.append(Sample(now, now))
        elapsed = max(now - min(sample.start for sample in self.samples), SAMPLE_MS)
        assert elapsed < WINDOW_MS + SAMPLE_MS
        return sum(sample.value for sample in self.samples) > QUOTA * elapsed


def receive_bound(fetchers: int, response: int = RESPONSE) -> int:
    return QUOTA * (WINDOW_MS + SAMPLE_MS) + fetchers * response


def transmit_bound(fetchers: int, response: int = RESPONSE) -> int:
    return QUOTA * WINDOW_MS + (2 * fetchers - 1) * response + max(QUOTA * SAMPLE_MS, response)


def naive_bound(fetchers: int, response: int = RESPONSE) -> int:
    return QUOTA * WINDOW_MS + fetchers * response


def highest_window(events: list[tuple[int, int]]) -> int:
    """Return the most bytes in any (t - 11 s, t]; events are (time, bytes)."""
    events = sorted(events)
    highest = total = first = 0
    for time, size in events:
        total += size
        while time - events[first][0] >= WINDOW_MS:
            total -= events[first][1]
            first += 1
        highest = max(highest, total)
    return highest


@dataclass
class Fetcher:
    """One thread: checks, and when admitted is busy until its response has landed; one response at a time."""

    free_at: int = 0
    pending: list[tuple[int, int]] = field(default_factory=list)  # (time of record, bytes)


def simulate(
    seed: int, fetchers: int, end_ms: int, *, leader: bool
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Run a random schedule and return (recorded, landed).

    At the follower a response is recorded, in parts, as it lands; at the leader at once, and it lands later.
    Bursts, pauses around a sample's length and tiny responses are frequent: there the extremes lie.
    """
    rng = random.Random(seed)
    rate = SimpleRate()
    threads = [Fetcher() for _ in range(fetchers)]
    recorded: list[tuple[int, int]] = []
    landed: list[tuple[int, int]] = []
    pauses = rng.choice([(1, 3), (1, 60), (1, 999), (400, 1100)])
    transit = rng.choice([0, 5, 80, 900, 3000])
    tiny = rng.choice([0.0, 0.1, 0.5])
    idle_until = 0
    now = 0
    while now < end_ms:
        now += rng.randint(1, 20) if rng.random() < 0.9 else rng.randint(*pauses)
        if rng.random() < 0.002:
            idle_until = now + rng.choice([500, 999, 1000, 5000, 11_000, 12_500])
        for thread in threads:  # what is due is recorded before anybody checks at this instant
            while thread.pending and thread.pending[0][0] <= now:
                due, size = thread.pending.pop(0)
                rate.record(size, due)
                recorded.append((due, size))
        # All free threads check before any of them records: the race, at its worst.
        admitted = [t for t in threads if t.free_at <= now and now >= idle_until and not rate.exceeded(now)]
        for thread in admitted:
            size = 1 if rng.random() < tiny else rng.choice([RESPONSE, RESPONSE, rng.randint(1, RESPONSE)])
            lands = now + rng.randint(0, transit) if transit else now
            thread.free_at = lands + 1
            if leader:
                rate.record(size, now)
                recorded.append((now, size))
                landed.append((lands, size))
            else:
                half = size // 2
                thread.pending = [(lands, half), (lands, size - half)]
                landed.append((lands, size))
    return recorded, landed


SEEDS = range(60)


@pytest.mark.parametrize("fetchers", [1, 3])
def test_no_schedule_receives_more_than_the_bound(fetchers: int) -> None:
    highest = 0
    for seed in SEEDS:
        _, landed = simulate(seed, fetchers, 30_000, leader=False)
        highest = max(highest, highest_window(landed))
    assert naive_bound(fetchers) < highest <= receive_bound(fetchers)


@pytest.mark.parametrize("fetchers", [1, 3])
def test_no_schedule_transmits_more_than_the_bound(fetchers: int) -> None:
    highest = 0
    for seed in SEEDS:
        recorded, landed = simulate(seed, fetchers, 30_000, leader=True)
        assert highest_window(recorded) <= receive_bound(fetchers)
        highest = max(highest, highest_window(landed))
    assert naive_bound(fetchers) < highest <= transmit_bound(fetchers)


def greedy(rate: SimpleRate, at: int, size: int = RESPONSE) -> Iterator[tuple[int, int]]:
    """Admit one response after another at one instant, as long as the check passes."""
    while not rate.exceeded(at):
        rate.record(size, at)
        yield at, size


def extreme(fetchers: int) -> tuple[SimpleRate, list[tuple[int, int]]]:
    """One byte opens a sample; nothing until its last ms; then all that is allowed until it expires."""
    rate = SimpleRate()
    rate.record(1, 0)
    events = [(0, 1)]
    last_ms = SAMPLE_MS - 1
    for now in range(last_ms, last_ms + WINDOW_MS - 1):
        events += greedy(rate, now, 1000)
    now = last_ms + WINDOW_MS - 1
    assert not rate.exceeded(now)
    # Every fetcher passes the check at this instant, then each has a whole response.
    for _ in range(fetchers):
        rate.record(RESPONSE, now)
        events.append((now, RESPONSE))
    return rate, events


@pytest.mark.parametrize("fetchers", [1, 4])
def test_a_window_may_hold_a_second_more_than_eleven(fetchers: int) -> None:
    _, events = extreme(fetchers)
    highest = highest_window(events)
    assert highest > naive_bound(fetchers) + QUOTA * (SAMPLE_MS - 20)
    assert highest <= receive_bound(fetchers)


def test_a_first_batch_above_the_response_limit_counts_whole() -> None:
    batch = 30 * RESPONSE
    rate = SimpleRate()
    events = [event for now in range(20_000) for event in greedy(rate, now, batch)]
    assert naive_bound(1) < highest_window(events) <= receive_bound(1, batch)


def test_steady_traffic_stays_within_eleven_seconds_and_a_response() -> None:
    """What a fetcher without pauses gets: the sample that overlaps the window carries its share, no more."""
    rate = SimpleRate()
    events = [event for now in range(60_000) for event in greedy(rate, now)]
    settled = [event for event in events if event[0] > 12_000]
    assert 0.98 * QUOTA * WINDOW_MS < highest_window(settled) <= naive_bound(1)


def test_on_the_wire_one_response_for_each_further_fetcher_may_come_on_top() -> None:
    """Fetcher A's response, recorded long ago and forgotten, lands in the window that B and A then fill."""
    _, recorded = extreme(2)
    end = max(time for time, _ in recorded)
    late = (
        end - WINDOW_MS + 1,
        RESPONSE,
    )  # recorded before time 0, in a sample of its own, and slow on the wire
    highest = highest_window([*recorded, late])
    assert receive_bound(2) - QUOTA * 20 < highest - RESPONSE
    assert receive_bound(2) < highest <= transmit_bound(2)


@pytest.mark.parametrize("fetchers", [1, 2])
def test_every_window_fits_the_quota_when_it_may_begin_up_to_a_second_earlier(fetchers: int) -> None:
    """For some h in [0, 1 s): the last 11 s + h hold at most quota * (11 s + h) + one response a fetcher."""
    for seed in range(20):
        _, landed = simulate(seed, fetchers, 25_000, leader=False)
        times = [time for time, _ in sorted(landed)]
        until = list(accumulate((size for _, size in sorted(landed)), initial=0))
        for end in times[:: max(1, len(times) // 40)]:
            upto = until[bisect_right(times, end)]
            excess = min(
                upto - until[bisect_right(times, end - WINDOW_MS - h)] - QUOTA * (WINDOW_MS + h)
                for h in range(SAMPLE_MS)
            )
            assert excess <= fetchers * RESPONSE
