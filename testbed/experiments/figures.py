"""Figures that are told but not judged: how near to the quota a move came, and to KIP-73's estimate."""

from dataclasses import dataclass

from results.criteria import MoveMeasures
from results.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Figure:
    """One number; `host` and `direction` are empty for the move as a whole."""

    name: str
    host: str
    direction: str
    value: float
    unit: str


def figures(run: Manifest, measures: MoveMeasures) -> tuple[Figure, ...]:
    """What was measured of a move, as shares of its quota and of its estimated time."""
    if run.move is None:
        return ()
    quota = run.move.quota_bytes_per_s
    found: list[tuple[str, str, str, float | None, str]] = []
    for rates in measures.rates:
        steady = rates.steady
        # Above 1 the strict reading of the quota, quota × 11 s in any 11 s, is missed by that much.
        found += [
            (name, rates.host, rates.direction, None if value is None else value / quota, "of the quota")
            for name, value in (
                ("highest 11 s", rates.highest_window_bytes_per_s),
                ("lowest 11 s", steady.lowest_window_bytes_per_s if steady else None),
                ("highest 1 s", rates.highest_second_bytes_per_s),
                ("steady", steady.mean_bytes_per_s if steady else None),
            )
        ]
    found.append(("throttled part", "", "", measures.throttled_s, "s"))
    found.append(("KIP-73's estimate", "", "", measures.kip73_s, "s"))
    found.append(("observed ÷ estimate", "", "", measures.kip73_ratio, ""))
    return tuple(
        Figure(name, host, direction, value, unit) for name, host, direction, value, unit in found if value is not None
    )
