"""A target broker is down when the move is asked for: it is accepted, waits, and ends when the broker is back."""

from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import Kill, Look, Start, Step, ask, before, end, moving, never, still

_WAITS = moving(adding=(6,), removing=(3,), staying=(1, 2))
_DONE = still((1, 2, 6), ordered=True, leaders=(1,))

EXPERIMENT = experiment(
    "kip455-target-dead",
    "a target broker is down, then back",
    partitions=[(1, 2, 3)],
    hold_bytes_per_s=None,
    steps=[
        Step("six-down", Kill(6)),
        Step("asked", ask(1, 2, 6), (before(still((1, 2, 3), leaders=(1,))), end("waits", _WAITS))),
        Step("still-waits", Look(), (before(_WAITS), never("done", _DONE), end("waits", _WAITS)), settle_s=3.0),
        Step("six-back", Start(), (before(_WAITS), end("done", _DONE)), timeout_s=60.0),
    ],
)
