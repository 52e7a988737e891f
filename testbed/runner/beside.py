"""What canaries said is kept beside each run of a series, for whoever judges the store later."""

import contextlib
import statistics
from collections.abc import Callable, Mapping, Sequence

from results.contract.canaries import canary_bytes, path_of, put_canaries, to_bytes
from results.contract.store import Store, StoreError
from testbed.runner.series import Ran, SoFar


def keep(store: Store, run_id: str, read: Mapping[str, float], progress: Callable[[str], None]) -> None:
    """Put it beside the run. A store that does not take it is told of, and ends nothing: the run is what counts."""
    try:
        put_canaries(store, run_id, read)
    except (OSError, StoreError) as error:
        progress(f"what canaries read beside {run_id} could not be kept: {error}")


def forget(store: Store, run_id: str) -> None:
    """Take away what was kept for a run that did not come to be; what cannot be taken away harms nobody."""
    with contextlib.suppress(OSError, StoreError):
        if run_id not in store.runs():
            store.files.discard(path_of(run_id))


def keep_readings(store: Store, state: SoFar, progress: Callable[[str], None]) -> None:
    """Put beside each run what was read before and after it, where that is not there: after an interruption more is
    known than there was."""
    try:
        kept = {ran.done.run_id: canary_bytes(store, ran.done.run_id) for ran in state.ran.values()}
    except (OSError, StoreError) as error:
        progress(f"what canaries read could not be looked for: {error}")
        return
    for ran in state.ran.values():
        run_id, read = ran.done.run_id, around(ran)
        if read and kept[run_id] != to_bytes(read):
            keep(store, run_id, read, progress)


def around(ran: Ran) -> Mapping[str, float]:
    """Each canary's median over the readings before and after a run. Pure."""
    return medians([each.reading for each in (*ran.before, *ran.after)])


def medians(readings: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    """Each canary's median over some readings. Pure."""
    names = sorted({name for reading in readings for name in reading})
    return {name: statistics.median([reading[name] for reading in readings if name in reading]) for name in names}
