"""Runs of a machine whose clock was ahead: they are left out until their time has come, and stop no series. Pure.

`now` is by the clock of the machine that judges. Where it is not known (None), everything is taken as it is dated.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from results.nights.bucket import iso, micros
from results.nights.incremental import night_of
from results.nights.state import SeriesState
from results.series.noise_estimation import LearnedNoise

AHEAD = timedelta(hours=12)
"""Two machines' clocks may differ; by more than that a run is dated wrongly. It is less than a night: what comes due is
not newer than the next night's own runs, nor do the runs of this night look old next to it."""
BACK = timedelta(hours=36)
"""So far a series is set back that was judged up to a run dated ahead: tonight's runs are new to it then."""


def latest(now: datetime) -> int:
    """What is dated later, in microseconds, is left out."""
    return micros((now + AHEAD).isoformat())


def up_to(states: Mapping[str, SeriesState], now: datetime | None) -> Mapping[str, SeriesState]:
    """The states of series that were judged up to a run dated ahead, set back so that tonight's are new to them."""
    return states if now is None else {name: _up_to(state, now) for name, state in states.items()}


def _up_to(state: SeriesState, now: datetime) -> SeriesState:
    edge, tonight = latest(now), micros((now - BACK).isoformat())
    if state.judged > edge:
        state = replace(state, judged=tonight)
    if state.said.told > edge:
        state = replace(state, said=replace(state.said, told=tonight))
    if state.history.baseline and micros(state.history.baseline) > edge:
        state = replace(state, history=replace(state.history, baseline=iso(tonight)))
    return state


def learned_by(learned: LearnedNoise | None, now: datetime | None) -> LearnedNoise | None:
    """What was learned, on no later night than this one: or it would not be learned again for as long."""
    if learned is None or now is None:
        return learned
    return replace(learned, night=min(learned.night, int(night_of(np.array([micros(now.isoformat())]))[0])))


def ahead(runs: int, first: str | None, newest: int | None, now: datetime) -> tuple[str, ...]:
    """A line about so many runs that are dated later than `latest`, `first` one of them; none where there are none."""
    if newest is None:
        return ()
    which = f"run {first} is" if runs == 1 else f"{runs} runs, {first} the first of them, are"
    return (
        f"{which} dated ahead of this machine's clock, {iso(newest)} where it is {iso(micros(now.isoformat()))}: left "
        "out until then; set the clock that is wrong",
    )
