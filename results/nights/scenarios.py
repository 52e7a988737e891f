"""A night in one line a scenario: the worst of what is said of its series, and of whether it was run at all. Pure."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from results.compare.judgement import WORST_FIRST, Verdict
from results.nights.night import About, Night
from results.nights.state import Said, State
from results.series.calculator import FEWEST_RUNS
from results.series.history import Reported

EXIT: Mapping[str, int] = {"OK": 0, "IMPROVED": 0, "REGRESSED": 1, "NOISY": 2, "ENV-CHANGED": 2, "NO-DATA": 2}
TONIGHT = timedelta(hours=36)
"""A run that is older than the store's newest by more than that is not tonight's."""
SAME_NIGHT = timedelta(hours=18)
"""Runs that are further apart are of two nights: what was told on the first is not told again on the second."""
RETIRED = timedelta(days=30)
"""A scenario that was not run for so long is not asked for any more."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series of tonight: what it is, and what is said of it; `changes` are all that were ever reported of it."""

    about: About
    verdict: Verdict
    why: str
    said: Said
    changes: tuple[Reported, ...]
    causes: Mapping[str, str]

    @property
    def open(self) -> tuple[Reported, ...]:
        """Changes that nobody has acknowledged."""
        return tuple(one for one in self.changes if one.acknowledged is None)

    @property
    def tonight(self) -> Reported | None:
        """The change that is reported tonight."""
        return self.said.reported if self.verdict == self.said.verdict else None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario of tonight; its series worst first."""

    id: str
    name: str
    experiment: str
    parameters: Mapping[str, Any]
    environment: Mapping[str, Any]
    kafka: str
    run_id: str
    newest: int
    verdict: Verdict
    lines: tuple[Line, ...]
    nothing: str = "nothing was measured"
    """Why there are no series."""

    @property
    def why(self) -> str:
        """That of its worst series."""
        return self.lines[0].why if self.lines else self.nothing


def scenarios(
    night: Night,
    *,
    experiments: Sequence[str] = (),
    only: Collection[str] | None = None,
    tonight: timedelta = TONIGHT,
    retired: timedelta = RETIRED,
) -> list[Scenario]:
    """Tonight's scenarios, worst first: those of `experiments`, and those whose ids are in `only`; retired ones are
    left out, and those not run tonight that were never run often enough to be judged.

    One that was run tonight in several environments is there once for each.
    """
    grouped: dict[str, list[About]] = {}
    for each in night.about:
        grouped.setdefault(each.scenario, []).append(each)
    newest = max((each.newest for each in night.about), default=0)
    found = []
    for members in grouped.values():
        last = max(members, key=lambda each: each.newest)
        age = _age(newest, last.newest)
        if age > retired or (experiments and last.experiment not in experiments):
            continue
        if (only is not None and last.scenario not in only) or (age > tonight and max(_runs_of(members)) < FEWEST_RUNS):
            continue
        # What was never measured, or not for long, is no series of tonight; nor what newer runs do not even look for.
        measured = [each for each in members if each.newest_value is not None]
        lately = [each for each in measured if _age(last.newest, each.newest_value) <= retired]
        lately = [each for each in lately if _looked_for(each, members, tonight)]
        found += [
            _scenario(lately, own, night.states, late=age > tonight, again=_age(newest, own.newest) > SAME_NIGHT)
            for own in _by_environment(members, last)
        ]
    return sorted(_named(found), key=lambda each: (rank(each.verdict), each.name))


def _looked_for(each: About, members: Sequence[About], tonight: timedelta) -> bool:
    here = max(other.newest for other in members if other.environment == each.environment)
    return _age(here, each.newest) <= tonight


def _runs_of(members: Iterable[About]) -> list[int]:
    return [each.runs for each in members if each.better != "canary"] or [0]


def _by_environment(members: Sequence[About], last: About) -> list[About]:
    """The newest run of each environment in which the scenario was run this night, that of the newest of all first."""
    found = {last.environment: last}
    for each in sorted(members, key=lambda each: each.newest, reverse=True):
        if _age(last.newest, each.newest) <= SAME_NIGHT:
            found.setdefault(each.environment, each)
    return list(found.values())


def _age(now: int, then: int | None) -> timedelta:
    return timedelta(microseconds=now - (then or 0))


def worst(found: Iterable[Scenario]) -> Verdict:
    """The night's verdict; nothing judged is NO-DATA."""
    return min((each.verdict for each in found), key=rank, default="NO-DATA")


def rank(verdict: Verdict) -> int:
    """0 is worst."""
    return WORST_FIRST.index(verdict)


def _scenario(
    members: Sequence[About], last: About, states: Mapping[str, State], *, late: bool, again: bool
) -> Scenario:
    here = [each for each in members if each.environment == last.environment and each.better != "canary"]
    elsewhere = [each for each in members if each.environment != last.environment]
    lines = [_line(each, last, elsewhere, states.get(each.series), late=late, again=again) for each in here]
    lines.sort(key=lambda line: (rank(line.verdict), line.about.metric))
    verdict: Verdict = lines[0].verdict if lines else "NO-DATA"
    nothing = "nothing was measured"
    before = [each for each in elsewhere if each.better != "canary" and each.runs >= FEWEST_RUNS]
    if not lines and before and not late:
        verdict, nothing = "ENV-CHANGED", _environment(max(before, key=lambda each: each.newest), last, 0)
    return Scenario(
        last.scenario,
        last.experiment,
        last.experiment,
        json.loads(last.parameters),
        json.loads(last.ground),
        last.kafka,
        last.run_id,
        last.newest,
        verdict,
        tuple(lines),
        nothing,
    )


def _line(
    about: About, last: About, elsewhere: Sequence[About], state: State | None, *, late: bool, again: bool
) -> Line:
    said = state.said if state is not None else Said("NO-DATA")
    history = state.history.reported if state is not None else ()
    verdict, why = _verdict(about, last, elsewhere, said, late=late)
    if said.reported is not None and verdict == said.verdict:
        acknowledged = any(one.first_bad == said.reported.first_bad and one.acknowledged for one in history)
        if acknowledged or again:
            told = "its change is acknowledged" if acknowledged else "its change was told before"
            verdict, why = "NO-DATA", f"{said.reported.change.runs} of {FEWEST_RUNS} runs since: {told}"
    return Line(about, verdict, why, said, history, state.causes if state is not None else {})


def _verdict(about: About, last: About, elsewhere: Sequence[About], said: Said, *, late: bool) -> tuple[Verdict, str]:
    if late:
        return "NO-DATA", f"not run tonight; the newest run is {last.run_id}"
    if about.disturbed and (about.newest_value or 0) < about.newest == last.newest:
        return "ENV-CHANGED", f"only other work on the machine kept tonight's run {last.run_id} from a verdict"
    if (about.newest_value or 0) < last.newest:
        told = "was inconclusive" if last.verdict == "inconclusive" else "has no value"
        return "NO-DATA", f"tonight's run {last.run_id} {told}"
    change = said.reported.change if said.reported is not None else None
    if said.verdict == "NO-DATA":
        before = [each for each in elsewhere if each.metric == about.metric and each.runs >= FEWEST_RUNS]
        if before and about.runs < FEWEST_RUNS:
            return "ENV-CHANGED", _environment(max(before, key=lambda each: each.newest), about, about.runs)
        since = " since its last change" if about.runs > said.runs else ""
        return "NO-DATA", f"{said.runs} of {FEWEST_RUNS} runs{since}"
    if change is not None:
        return _known(said.verdict), said.why or f"{change.kind} over {_runs(change.runs)}"
    if said.verdict == "NOISY":
        return "NOISY", f"a change of {said.detectable or 0:.0%} would be missed as often as not"
    return _known(said.verdict), ""


def _environment(before: About, now: About, runs: int) -> str:
    was, is_now = json.loads(before.ground), json.loads(now.ground)
    different = [f"{name} {was.get(name)} → {is_now[name]}" for name in is_now if was.get(name) != is_now[name]]
    return f"the environment changed: {'; '.join(different)} ({runs} of {FEWEST_RUNS} runs in it)"


def _known(word: str) -> Verdict:
    return next(verdict for verdict in WORST_FIRST if verdict == word)


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"


def _named(found: Sequence[Scenario]) -> list[Scenario]:
    """Each with its name: the experiment, those parameters in which it is not like all others of it, and of several
    environments in which it was run what sets them apart."""
    named = []
    for each in found:
        alike = [other for other in found if other.experiment == each.experiment]
        same = [other for other in alike if other.id == each.id]
        name = " ".join([each.experiment, *_differing(each.parameters, [other.parameters for other in alike])])
        ground = _differing(each.environment, [other.environment for other in same])
        named.append(replace(each, name=f"{name}, {' '.join(ground)}" if ground else name))
    return named


def _differing(own: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> list[str]:
    """`name=value` of what is not alike in all."""
    keys = sorted({key for each in others for key in each})
    differ = [key for key in keys if len({str(each.get(key)) for each in others}) > 1]
    return [f"{key}={own[key]}" for key in differ if key in own]
