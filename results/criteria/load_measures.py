"""The machine's load over a span of a run. Pure."""

from collections.abc import Sequence

import numpy as np

from results.criteria.measures import MachineLoad
from results.criteria.series import RunSeries
from results.criteria.windows import longest_gap_s, trailing_mean_max


def machine_load(
    run: RunSeries, started_us: int, end_us: int, window_s: float, phases: Sequence[tuple[int, int]] = ()
) -> MachineLoad:
    """Busy and stolen shares of all cores; the highest are means over `window_s`.

    With `phases` the highest is that of windows inside one, as rates are judged: a broker that starts again keeps the
    cores busy itself, and no window across its restart is judged.
    """
    busy, steal = run.gauge("cpu.busy", "machine"), run.gauge("cpu.steal", "machine")
    inside = (busy.t > started_us) & (busy.t <= end_us)
    return MachineLoad(
        polls=int(np.count_nonzero(inside)),
        longest_gap_s=longest_gap_s(busy.t, started_us, end_us),
        busy_mean=float(np.mean(busy.value[inside])) if inside.any() else None,
        busy_window_max=trailing_mean_max(busy, started_us, end_us, window_s, phases),
        steal_window_max=trailing_mean_max(steal, started_us, end_us, window_s, phases),
    )
