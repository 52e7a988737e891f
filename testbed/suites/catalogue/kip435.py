"""KIP-435's test plan: the tests of a reassignment, parametrised over how it is carried out. See docs/kip435.md."""

from testbed.suites.suite import LIMIT_S, Case, Suite

MODES = ("unbatched", "batched", "incremental")
_LONG_S = 1800.0
_SLOW = "rate=5MB/s"


def _each(
    name: str, experiment: str, *settings: str, modes: tuple[str, ...] = MODES, limit_s: float = LIMIT_S
) -> tuple[Case, ...]:
    """A case for each mode."""
    return tuple(Case(f"{name}-{mode}", experiment, (f"mode={mode}", *settings), limit_s=limit_s) for mode in modes)


_SMOKE = (
    *_each("two-node", "kip73-two-node", _SLOW, "preload=20s", modes=("batched", "incremental")),
    *_each("exchange", "kip435-exchange", modes=("batched",)),
)
_CI = (
    *_each("two-node", "kip73-two-node", _SLOW),
    *_each("one-to-two-produce", "kip73-one-to-two-produce", _SLOW, "inbound=1MB/s"),
    *_each("exchange", "kip435-exchange"),
    *_each("live-change", "kip73-live-change", modes=("batched",)),
    *_each("bounce", "kip73-bounce", modes=("incremental",)),
    *_each("rf4", "kip435-rf4", modes=("unbatched", "batched")),
)
_SCENARIOS = (
    "two-node",
    "two-node-produce",
    "one-to-two",
    "one-to-two-produce",
    "two-to-one",
    "two-to-one-produce",
    "live-change",
    "mixed-volume",
    "stuck",
    "bounce",
    "nic-bound",
    "fetch-size",
)
_RELEASE = (
    *(case for name in _SCENARIOS for case in _each(name, f"kip73-{name}", limit_s=_LONG_S)),
    *_each("exchange", "kip435-exchange", limit_s=_LONG_S),
    *_each("exchange-r2", "kip435-exchange", "replicas=2", modes=MODES[1:], limit_s=_LONG_S),
    *_each("exchange-p1", "kip435-exchange", "reassignment-batch-size=1", modes=MODES[1:], limit_s=_LONG_S),
    *_each("exchange-l1", "kip435-exchange", "leaders=1", modes=MODES[1:], limit_s=_LONG_S),
    *_each("rf4", "kip435-rf4", limit_s=_LONG_S),
)

SUITE = Suite(
    "kip435",
    "Does a reassignment in KIP-435's steps keep its limits, and every promise that one at once keeps?",
    "kip435_test.py",
    {"smoke": _SMOKE, "ci": _CI, "release": _RELEASE},
)
