"""What Kafka's sensor reads of simulated traffic: a response whenever the bytes of one more have passed."""

import numpy as np

from results.contract.move import SAMPLE_S, WINDOW_SAMPLES
from results.criteria.quantities import US
from results.criteria.sensor import QuotaSensor


class Sensed:
    """Readings in order of time, of traffic whose bytes `passed` at each of `instants`."""

    def __init__(self, instants, passed, response, samples=WINDOW_SAMPLES, sample_s=SAMPLE_S):
        passed = np.maximum.accumulate(passed)
        total = float(passed[-1])
        marks = np.append(np.arange(response, total, response), total) if total > 0 else np.empty(0)
        self._at = np.interp(marks, passed, instants)
        self._sizes = np.diff(np.concatenate([[0.0], marks]))
        self._sensor, self._done = QuotaSensor(samples, sample_s), 0

    def byte_rate(self, t):
        while self._done < len(self._at) and self._at[self._done] <= t:
            self._sensor.record(self._at[self._done] * US, self._sizes[self._done])
            self._done += 1
        return self._sensor.rate(t * US)
