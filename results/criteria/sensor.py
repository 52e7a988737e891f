"""A port of the sensor behind a replication quota, and the rate that it reads of logs that grow as recorded.

Kafka's `SampledStat` keeps the samples of the quota window and one more that overlaps; `SimpleRate` divides their sum
by the time since the oldest of them began. A sample begins *with* a response: its bytes count, the pause before it does
not. Instants are microseconds.
"""

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from results.contract.move import SAMPLE_S, WINDOW_SAMPLES
from results.criteria.quantities import US
from results.criteria.sample_series import Floats, Micros, Series


class QuotaSensor:
    """The samples of one quota, `samples` of `sample_s` each. Record and read in order of time."""

    def __init__(self, samples: int = WINDOW_SAMPLES, sample_s: float = SAMPLE_S) -> None:
        self._count, self._sample_us = samples, round(sample_s * US)
        self._ring: list[list[float]] = []
        """[begin, last event, bytes]."""
        self._current = 0

    def record(self, us: float, size: float, last_us: float | None = None) -> None:
        """Record that responses of `size` bytes in all passed, one at `us` or several until `last_us`.

        Several begin before the sample that takes the first of them ends; see `sample_end`.
        """
        ring = self._ring
        if not ring:
            ring.append([us, us, 0.0])
        elif us - ring[self._current][0] >= self._sample_us:
            self._current = (self._current + 1) % (self._count + 1)
            if self._current == len(ring):
                ring.append([us, us, 0.0])
            else:
                ring[self._current][:] = us, us, 0.0
        ring[self._current][1] = us if last_us is None else last_us
        ring[self._current][2] += size

    def sample_end(self, us: float) -> float:
        """Return when the sample ends that takes a response at `us`."""
        begin = self._ring[self._current][0] if self._ring else us
        return (begin if us - begin < self._sample_us else us) + self._sample_us

    def state(self, us: float) -> tuple[float, float]:
        """Return the bytes that count and the seconds that divide them; samples that expired begin again at `us`."""
        if not self._ring:
            self._ring.append([us, us, 0.0])
        oldest, counted, expires_us = us, 0.0, self._count * self._sample_us
        for sample in self._ring:
            if us - sample[1] >= expires_us:
                sample[:] = us, us, 0.0
            oldest = min(oldest, sample[0])
            counted += sample[2]
        return counted, max(us - oldest, self._sample_us) / US

    def rate(self, us: float) -> float:
        """Return the bytes per second that the quota check compares with the quota."""
        counted, seconds = self.state(us)
        return counted / seconds


PLACES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Where responses lie between two readings, as fractions of the time between them: readings do not tell."""
EMPTY_US = 50_000
"""Time between responses without listed bytes: `replica.fetch.backoff.ms` of a tuned follower."""


def predicted(
    growth: Series,
    polls: Micros,
    response_bytes: float,
    *,
    empty: bool = False,
    samples: int = WINDOW_SAMPLES,
    sample_s: float = SAMPLE_S,
    checks_us: int = 0,
) -> Floats:
    """Return what a sensor reads at each of `polls`, in B/s, of logs that grow as `growth` in such responses.

    A leader records the headers of responses without listed bytes, too. With `empty` samples begin with those.
    `samples` of `sample_s` each are the quota window of the run's brokers. With `checks_us` the broker checks its quota
    so often from the first bytes on: a sample that has expired begins again at a check, whether it is polled or not.
    """
    read = polls
    if checks_us and len(growth) and len(polls):
        read = np.union1d(polls, np.arange(growth.t[0], polls[-1], checks_us))
    asked = np.searchsorted(read, polls)
    between = np.empty(0)
    if empty and len(growth):
        between = np.arange(growth.t[0] - round((samples + 1) * sample_s * US), growth.t[-1], EMPTY_US)
    found = []
    for instants, sizes in _responses(growth, response_bytes):
        every, each = np.concatenate([instants, between]), np.concatenate([sizes, np.zeros(len(between))])
        order = np.argsort(every, kind="stable")
        found.append(list(readings(every[order], each[order], read, QuotaSensor(samples, sample_s))))
    return np.asarray(np.mean(np.array(found, dtype=np.float64), axis=0))[asked]


def readings(instants: Floats, sizes: Floats, polls: Micros, sensor: QuotaSensor) -> Iterator[float]:
    """Yield what a sensor reads at each poll; it records these sizes at these instants, both in order of time.

    Kafka makes the sensor when it first records: the polls before read 0, and no sample of it begins.
    """
    done = 0
    at, upto = instants.tolist(), [0.0, *np.cumsum(sizes).tolist()]
    for poll, passed in zip(polls.tolist(), np.searchsorted(instants, polls, side="right").tolist(), strict=True):
        while done < passed:  # all responses of one sample at once
            end = bisect_left(at, sensor.sample_end(at[done]), done + 1, passed)
            sensor.record(at[done], upto[end] - upto[done], at[end - 1])
            done = end
        yield sensor.rate(float(poll)) if done else 0.0


def _responses(growth: Series, response_bytes: float) -> Iterator[tuple[Floats, Floats]]:
    """Yield instants and sizes for each of `PLACES`: the bytes between two readings, in evenly spaced responses."""
    sizes = np.diff(growth.value)
    grown = np.flatnonzero(sizes > 0)
    counts = np.maximum(1, np.rint(sizes[grown] / response_bytes)).astype(np.int64)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    at, every = (np.repeat(each, counts) for each in (growth.t[grown], np.diff(growth.t)[grown] / counts))
    for place in PLACES:
        yield at + (number + place) * every, np.repeat(sizes[grown] / counts, counts)
