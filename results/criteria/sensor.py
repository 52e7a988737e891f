"""A port of the sensor behind a replication quota, and the rate that it reads of logs that grow as recorded.

Kafka's `SampledStat` keeps the samples of the quota window and one more that overlaps; `SimpleRate` divides their sum
by the time since the oldest of them began. A sample begins *with* a response: its bytes count, the pause before it does
not. Instants are microseconds.
"""

from collections.abc import Iterator

import numpy as np

from results.contract.move import SAMPLE_S, WINDOW_SAMPLES
from results.criteria.quantities import US
from results.criteria.series import Floats, Micros, Series


class QuotaSensor:
    """The samples of one quota, `samples` of `sample_s` each. Record and read in order of time."""

    def __init__(self, samples: int = WINDOW_SAMPLES, sample_s: float = SAMPLE_S) -> None:
        self._count, self._sample_us = samples, round(sample_s * US)
        self._ring: list[list[float]] = []
        """[begin, last event, bytes]."""
        self._current = 0

    def record(self, us: float, size: float) -> None:
        """Record that a response of `size` bytes passed."""
        ring = self._ring
        if not ring:
            ring.append([us, us, 0.0])
        elif us - ring[self._current][0] >= self._sample_us:
            self._current = (self._current + 1) % (self._count + 1)
            if self._current == len(ring):
                ring.append([us, us, 0.0])
            else:
                ring[self._current][:] = us, us, 0.0
        ring[self._current][1] = us
        ring[self._current][2] += size

    def state(self, us: float) -> tuple[float, float]:
        """Return the bytes that count and the seconds that divide them; samples that expired begin again at `us`."""
        for sample in self._ring:
            if us - sample[1] >= self._count * self._sample_us:
                sample[:] = us, us, 0.0
        if not self._ring:
            self._ring.append([us, us, 0.0])
        oldest = min(sample[0] for sample in self._ring)
        return sum(sample[2] for sample in self._ring), max(us - oldest, self._sample_us) / US

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
) -> float:
    """Return the mean of what a sensor reads at `polls`, in B/s, of logs that grow as `growth` in such responses.

    A leader records the headers of responses without listed bytes, too. With `empty` samples begin with those.
    `samples` of `sample_s` each are the quota window of the run's brokers.
    """
    means = []
    for place in PLACES:
        instants, sizes = _responses(growth, response_bytes, place)
        if empty and len(growth):
            between = np.arange(growth.t[0] - round((samples + 1) * sample_s * US), growth.t[-1], EMPTY_US)
            instants, sizes = np.concatenate([instants, between]), np.concatenate([sizes, np.zeros(len(between))])
            order = np.argsort(instants, kind="stable")
            instants, sizes = instants[order], sizes[order]
        means.append(float(np.mean(list(readings(instants, sizes, polls, QuotaSensor(samples, sample_s))))))
    return float(np.mean(means))


def readings(instants: Floats, sizes: Floats, polls: Micros, sensor: QuotaSensor | None = None) -> Iterator[float]:
    """Yield what a sensor reads at each poll; it records these sizes at these instants, both in order of time.

    Without a `sensor` it is one with Kafka's default window.
    """
    sensor, done = sensor or QuotaSensor(), 0
    for poll in polls:
        while done < len(instants) and instants[done] <= poll:
            sensor.record(float(instants[done]), float(sizes[done]))
            done += 1
        yield sensor.rate(float(poll))


def _responses(growth: Series, response_bytes: float, place: float) -> tuple[Floats, Floats]:
    """Return instants and sizes: the bytes between two readings, in responses that are evenly spaced there."""
    instants: list[Floats] = []
    sizes: list[Floats] = []
    for at, lasts, size in zip(growth.t[:-1], np.diff(growth.t), np.diff(growth.value), strict=True):
        if size > 0:
            count = max(1, round(size / response_bytes))
            instants.append(at + (np.arange(count) + place) * (lasts / count))
            sizes.append(np.full(count, size / count))
    empty = np.empty(0)
    return (np.concatenate(instants), np.concatenate(sizes)) if instants else (empty, empty)
