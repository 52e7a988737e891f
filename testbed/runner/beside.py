"""What canaries said is kept beside each run of a series, for whoever judges the store later."""

import statistics
from collections.abc import Mapping, Sequence

from results.canaries import put_canaries
from results.store import Store
from testbed.runner.series import Ran, SoFar


def keep_readings(store: Store, state: SoFar) -> None:
    """Put beside each run what was read before and after it; again after an interruption, when more is known."""
    for ran in state.ran.values():
        if read := around(ran):
            put_canaries(store, ran.done.run_id, read)


def around(ran: Ran) -> Mapping[str, float]:
    """Each canary's median over the readings before and after a run. Pure."""
    return medians([each.reading for each in (*ran.before, *ran.after)])


def medians(readings: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    """Each canary's median over some readings. Pure."""
    names = sorted({name for reading in readings for name in reading})
    return {name: statistics.median([reading[name] for reading in readings if name in reading]) for name in names}
