"""What is compared of moves that no quota holds back: their time beside the formula, bytes, clients, requests."""

from collections.abc import Callable

from results.compare.measures import Better, Measure, register
from results.contract.manifest import Manifest
from results.criteria.measures import MoveMeasures
from results.criteria.relocation_measures import copied_bytes, formula

Value = Callable[[Manifest, MoveMeasures], float | None]


def _formula(run: Manifest, _measured: MoveMeasures) -> float | None:
    return None if run.relocation is None else formula(run, run.relocation, whole=True)


def _of_formula(run: Manifest, measured: MoveMeasures) -> float | None:
    seconds = _formula(run, measured)
    return measured.done_s / seconds if seconds and measured.done_s is not None else None


def _between(run: Manifest, measured: MoveMeasures) -> float | None:
    copied = None if run.relocation is None else copied_bytes(run.relocation, measured)
    return None if copied is None else max(0.0, copied) / 1e6


def _longest_ack(_run: Manifest, measured: MoveMeasures) -> float | None:
    found = measured.relocation.longest_ack_us if measured.relocation else None
    return None if found is None else found / 1000


def _requests(_run: Manifest, measured: MoveMeasures) -> float | None:
    found = measured.relocation.requests if measured.relocation else None
    return None if found is None else sum(each.count for each in found)


def _back(_run: Manifest, measured: MoveMeasures) -> float | None:
    return measured.relocation.p99_back_s if measured.relocation else None


FORMULA = "formula-seconds"
_ALL: tuple[tuple[str, str, str, Better, Value, bool], ...] = (
    (FORMULA, "the whole log ÷ NIC", "s", "lower", _formula, False),
    ("of-formula", "seconds of the move ÷ the formula's", "of the formula", "lower", _of_formula, True),
    ("between-brokers", "NIC bytes between brokers beyond the load's", "MB", "lower", _between, True),
    ("longest-ack", "longest that a record waited to be acknowledged", "ms", "lower", _longest_ack, True),
    ("store-requests", "requests to the object store during the move", "", "lower", _requests, False),
    ("p99-back", "until acknowledgements are as quick as before", "s", "lower", _back, False),
)
for _name, _summary, _unit, _better, _value, _compared in _ALL:
    register(Measure(_name, _summary, _unit, _better, _value, compared=_compared, asked=True))
