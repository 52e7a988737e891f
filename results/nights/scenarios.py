"""The verdict of each scenario of a night: the worst one of its series, or NO-DATA when it was not run. Pure."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from results.contract.texts import plural
from results.nights.bucket import EPOCH, micros
from results.nights.judged_runs import DAY_US
from results.nights.night import RETIRED, Night, SeriesInfo
from results.nights.policies import Mute, Policies, SeriesPattern
from results.nights.state import NEVER, SeriesState, SeriesVerdict
from results.nights.values import FAILED
from results.series.calculator import FEWEST_RUNS_TO_JUDGE
from results.series.history import ReportedChange
from results.verdicts import LISTED, NightVerdict, known, rank, worst_of

TONIGHT = timedelta(hours=36)
"""The age, against the store's newest run, beyond which a run is not tonight's."""
SAME_NIGHT = timedelta(hours=18)
"""The distance of runs of two nights: a change reported on the first is not reported again on the second."""


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """One series of tonight: what it is, and what is said of it; `changes` are all that were ever reported of it."""

    about: SeriesInfo
    verdict: NightVerdict
    why: str
    said: SeriesVerdict
    changes: tuple[ReportedChange, ...]
    causes: Mapping[str, str]
    tonight: ReportedChange | None = None
    """The change that is reported tonight."""
    measured: bool = True
    """Whether tonight has a value."""

    @property
    def open(self) -> tuple[ReportedChange, ...]:
        """Return the changes that no user has acknowledged."""
        return tuple(one for one in self.changes if one.acknowledged is None)

    @property
    def waiting(self) -> tuple[ReportedChange, ...]:
        """Return the open changes that an earlier night reported."""
        return tuple(one for one in self.open if self.tonight is None or one.first_bad != self.tonight.first_bad)

    @property
    def new_lines(self) -> tuple[str, ...]:
        """Return the kinds of log lines that are new, in words."""
        return tuple(map(str, self.said.lines))

    @property
    def judged(self) -> bool:
        """Return whether the series decides about its scenario; otherwise it is listed, with the reason."""
        return self.verdict not in LISTED


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """A scenario of tonight; its series worst first."""

    id: str
    name: str
    experiment: str
    parameters: Mapping[str, Any]
    environment: Mapping[str, Any]
    kafka: str
    run_id: str
    newest: int
    verdict: NightVerdict
    lines: tuple[SeriesResult, ...]
    nothing: str = "nothing was measured"
    """Return why there are no series."""

    @property
    def why(self) -> str:
        """Return the reason of the scenario's verdict, from the first series that has it."""
        return next((line.why for line in self.lines if line.verdict == self.verdict), self.nothing)


def scenarios(
    night: Night,
    *,
    experiments: Sequence[str] = (),
    only: Collection[str] | None = None,
    ran: Collection[str] | None = None,
    now: datetime | None = None,
    tonight: timedelta = TONIGHT,
    begun: datetime | None = None,
    retired: timedelta = RETIRED,
    policies: Policies | None = None,
) -> list[ScenarioResult]:
    """Return tonight's scenarios, worst first: those of `experiments`, and those whose ids are in `only`; retired ones
    are left out, and those not run tonight that were never run often enough to be judged.

    Where it is known which `ran` (by their ids), no other was, however new its newest run is. `now` is by this
    machine's clock. A night that is known to have `begun` at a time has no value of an earlier run. `policies` are
    what users have said of series.

    One that was run tonight in several environments is there once for each.
    """
    grouped: dict[str, list[SeriesInfo]] = {}
    for each in night.about:
        grouped.setdefault(each.scenario, []).append(each)
    # A run of a machine whose clock is ahead shall not retire all others.
    latest = micros((now + tonight).isoformat()) if now is not None else None
    known = [each.newest for each in night.about if latest is None or each.newest <= latest]
    newest = max(known or [each.newest for each in night.about], default=0)
    first = NEVER if begun is None else micros(begun.isoformat())
    user = _User(policies or Policies(), now or EPOCH + timedelta(microseconds=newest))
    found = []
    for members in grouped.values():
        last = max(members, key=lambda each: each.newest)
        age = _age(newest, last.newest)
        late = age > tonight or (ran is not None and last.scenario not in ran)
        if age > retired or (experiments and last.experiment not in experiments):
            continue
        judged = any(each.runs >= FEWEST_RUNS_TO_JUDGE for each in members if each.better != "canary")
        if (only is not None and last.scenario not in only) or (age > tonight and not judged):
            continue
        # What was never measured, or not for long, is no series of tonight; nor what newer runs do not even look for.
        measured = [each for each in members if each.newest_value is not None]
        lately = [each for each in measured if _age(last.newest, each.newest_value) <= retired]
        lately = [each for each in lately if _looked_for(each, members)]
        found += [
            _scenario(lately, own, night.states, newest, first, late=late, user=user)
            for own in _by_environment(members, last, night.states, newest, first)
        ]
    return sorted(_named(found), key=lambda each: (rank(each.verdict), each.name))


def _looked_for(each: SeriesInfo, members: Sequence[SeriesInfo]) -> bool:
    here = max(other.newest for other in members if other.environment == each.environment)
    return _age(here, each.newest) <= SAME_NIGHT


def _by_environment(
    members: Sequence[SeriesInfo], last: SeriesInfo, states: Mapping[str, SeriesState], newest: int, first: int
) -> list[SeriesInfo]:
    """Return the newest run of each environment in which something was measured this night, or of which something is
    new. This night has no run before `first`.

    An environment with enough runs to be judged counts when it only ran: of several machines in one store, one whose
    runs say nothing is not hidden by the others. Where there is none, return the newest run of all.
    """
    found: dict[str, SeriesInfo] = {}

    def tonight(at: int | None) -> bool:
        return at is not None and at >= first and (first > NEVER or _age(last.newest, at) <= SAME_NIGHT)

    for each in sorted(members, key=lambda each: each.newest, reverse=True):
        ran = tonight(each.newest_value) or (each.runs >= FEWEST_RUNS_TO_JUDGE and tonight(each.newest))
        if each.better != "canary" and (ran or _is_new(states.get(each.series), newest, first)):
            found.setdefault(each.environment, each)
    return list(found.values()) or [last]


def _is_new(state: SeriesState | None, newest: int, first: int) -> bool:
    """Return whether a change of the series is reported for the first time, or again in the same night.

    A judgement since `first`, when this night began, may have been of other scenarios: then no user has the report.
    """
    if state is None or state.said.reported is None:
        return False
    since = first > NEVER and state.said.reported_at >= first
    if not since and _age(newest, state.said.reported_at) > SAME_NIGHT:
        return False
    return all(one.first_bad != state.said.reported.first_bad for one in state.history.reported if one.acknowledged)


def _age(now: int, then: int | None) -> timedelta:
    return timedelta(microseconds=now - (then or 0))


def worst(found: Iterable[ScenarioResult], problems: Sequence[str] = ()) -> NightVerdict:
    """Return the night's verdict.

    Nothing judged is NO-DATA, and so is, at best, a night with problems: what could not be read or was not run may be
    what has changed.
    """
    every = [each.verdict for each in found]
    return worst_of([*every, "NO-DATA"] if problems else every)


def _scenario(
    members: Sequence[SeriesInfo],
    last: SeriesInfo,
    states: Mapping[str, SeriesState],
    newest: int,
    first: int,
    *,
    late: bool,
    user: "_User",
) -> ScenarioResult:
    here = [each for each in members if each.environment == last.environment and each.better != "canary"]
    elsewhere = [each for each in members if each.environment != last.environment]
    lines = [
        user.applied(_line(each, last, elsewhere, states.get(each.series), newest, first, late=late)) for each in here
    ]
    lines.sort(key=lambda line: (not line.judged, rank(line.verdict), line.about.metric))
    verdict = of_series(lines)
    nothing = "nothing was measured"
    before = [each for each in elsewhere if each.better != "canary" and each.runs >= FEWEST_RUNS_TO_JUDGE]
    if not lines and before and not late:
        verdict, nothing = "ENV-CHANGED", _environment(max(before, key=lambda each: each.newest), last, 0)
    if not lines and (mute := user.mute_of_scenario(last)):
        verdict, nothing = "MUTED", _muted(mute, f"; otherwise {verdict}: {nothing}")
    return ScenarioResult(
        last.scenario,
        last.experiment,
        last.experiment,
        json.loads(last.parameters),
        json.loads(last.environment_details),
        last.kafka,
        last.run_id,
        last.newest,
        verdict,
        tuple(lines),
        nothing,
    )


def of_series(lines: Sequence[SeriesResult]) -> NightVerdict:
    """Return a scenario's verdict: the worst of the series that are judged.

    Where nothing is judged but the number of failed criteria, and measures are listed, that alone is no OK.
    """
    judged = worst_of((line.verdict for line in lines if line.judged), "OK")
    measures = [line for line in lines if line.about.metric != FAILED] or lines
    if judged != "OK" or any(line.judged for line in measures):
        return judged
    listed = [line.verdict for line in lines if not line.judged]
    return "LEARNING" if "LEARNING" in listed else worst_of(listed)


@dataclass(frozen=True, slots=True)
class _User:
    """What users have said of series, as of a time."""

    policies: Policies
    at: datetime

    def applied(self, line: SeriesResult) -> SeriesResult:
        """Return the line with its floors, and muted when it is."""
        said = line.said
        if line.verdict != "NO-DATA" and said.low is not None and said.high is not None and line.measured:
            for floor in self.policies.floors:
                if self._fits(floor.series, line) and (broken := floor.broken(said.low, said.high)):
                    line = _by_itself(line, "BELOW-FLOOR", f"{broken} {line.about.unit}".rstrip())
        for mute in self.policies.mutes:
            if mute.holds(self.at) and self._fits(mute.series, line):
                unmuted = f"; otherwise {line.verdict}: {line.why}".rstrip(": ") if line.judged else ""
                line = replace(line, verdict="MUTED", why=_muted(mute, unmuted))
        return line

    def mute_of_scenario(self, about: SeriesInfo) -> Mute | None:
        """Return the mute of a whole scenario; None without one. `about` is any of its series."""
        parameters = json.loads(about.parameters)
        return self.policies.mute_of_scenario(about.scenario, about.experiment, parameters, self.at)

    def _fits(self, text: str, line: SeriesResult) -> bool:
        about = line.about
        parameters = json.loads(about.parameters)
        return SeriesPattern.parse(text).fits(about.series, about.scenario, about.experiment, about.metric, parameters)


def _muted(mute: Mute, otherwise: str) -> str:
    return f"until {mute.ends:%Y-%m-%dT%H:%M}, {mute.by}: {mute.reason}{otherwise}"


def _by_itself(line: SeriesResult, verdict: NightVerdict, why: str) -> SeriesResult:
    """Return the line with what the night shows without a history, unless that is worse than what it has.

    The machine answers for it when a canary moved in the same night.
    """
    if line.said.machine:
        verdict, why = "ENV-CHANGED", f"{line.said.machine}; {why}"
    return replace(line, verdict=verdict, why=why) if rank(verdict) < rank(line.verdict) else line


def _line(
    about: SeriesInfo,
    last: SeriesInfo,
    elsewhere: Sequence[SeriesInfo],
    state: SeriesState | None,
    newest: int,
    first: int,
    *,
    late: bool,
) -> SeriesResult:
    said = state.said if state is not None else SeriesVerdict("NO-DATA")
    if first > NEVER:
        measured = about.newest_value is not None and about.newest_value >= first
    else:
        measured = _same_night(about.newest_value, last.newest)
    if said.reported is not None and _is_new(state, newest, first):  # whatever tonight's last run came to
        change, tonight = said.reported.change, said.reported
        verdict, why = known(said.verdict), said.why or f"{change.kind} over {plural(change.runs, 'run')}"
    else:
        reason = _acknowledged(state)
        (verdict, why), tonight = _verdict(about, last, elsewhere, said, reason, measured=measured, late=late), None
    history, causes = (state.history.reported, state.causes) if state is not None else ((), {})
    line = SeriesResult(about, verdict, why, said, history, causes, tonight, measured)
    if late or not measured:
        return replace(line, said=replace(said, lines=()))
    if said.failed:
        line = _by_itself(line, "FAILED", said.failed)
    if found := "; ".join(str(each) for each in said.lines if each.found):
        line = _by_itself(line, "REGRESSED", found)
    return line


def _acknowledged(state: SeriesState | None) -> str:
    """Return a user's reason for the change that the newest judgement reported; empty without one."""
    reported = None if state is None else state.said.reported
    if state is None or reported is None:
        return ""
    own = (one.acknowledged for one in state.history.reported if one.first_bad == reported.first_bad)
    return next((by.reason for by in own if by is not None), "")


def _verdict(
    about: SeriesInfo,
    last: SeriesInfo,
    elsewhere: Sequence[SeriesInfo],
    said: SeriesVerdict,
    acknowledged: str,
    *,
    measured: bool,
    late: bool,
) -> tuple[NightVerdict, str]:
    if late:
        return "NO-DATA", f"not run tonight; the newest run is {last.run_id}"
    if about.noisy and not measured and about.newest == last.newest:
        return "ENV-CHANGED", f"only other work on the machine prevented a verdict of tonight's run {last.run_id}"
    if not measured:
        why = "was inconclusive" if last.verdict == "inconclusive" else "has no value"
        return "NO-DATA", f"tonight's run {last.run_id} {why}"
    if acknowledged:
        return "LEARNING", f"its change was acknowledged: {acknowledged}"
    if said.reported is not None:
        return "NO-DATA", "not measured since its change was reported"
    if said.verdict == "NO-DATA":
        before = [each for each in elsewhere if each.metric == about.metric and each.runs >= FEWEST_RUNS_TO_JUDGE]
        if (
            before
            and about.runs < FEWEST_RUNS_TO_JUDGE
            and (about.oldest is None or _same_night(about.oldest, about.newest))
        ):
            return "ENV-CHANGED", _environment(max(before, key=lambda each: each.newest), about, about.runs)
        since = " since its last change" if about.runs > said.runs else ""
        return "LEARNING", f"{said.runs} of {FEWEST_RUNS_TO_JUDGE} runs{since}"
    if said.verdict == "NOISY":
        return "NOISY", f"a change of {said.detectable or 0:.0%} would be missed in half of all cases"
    return known(said.verdict), ""


def _same_night(one: int | None, other: int) -> bool:
    """Return whether two times are of one night; nights change at noon, UTC (see `night_of`)."""
    return one is not None and (one - DAY_US // 2) // DAY_US == (other - DAY_US // 2) // DAY_US


def _environment(before: SeriesInfo, now: SeriesInfo, runs: int) -> str:
    was, is_now = json.loads(before.environment_details), json.loads(now.environment_details)
    different = [f"{name} {was.get(name)} → {is_now[name]}" for name in is_now if was.get(name) != is_now[name]]
    return f"the environment changed: {'; '.join(different)} ({runs} of {FEWEST_RUNS_TO_JUDGE} runs in it)"


def _named(found: Sequence[ScenarioResult]) -> list[ScenarioResult]:
    """Return each scenario with its name.

    The name is the experiment, and those parameters in which the scenario is not like all others of it. Where it was
    run in several environments, what sets them apart follows.
    """
    alike: dict[str, list[ScenarioResult]] = {}
    same: dict[str, list[ScenarioResult]] = {}
    for each in found:
        alike.setdefault(each.experiment, []).append(each)
        same.setdefault(each.id, []).append(each)
    parameters = {name: _differing([each.parameters for each in group]) for name, group in alike.items()}
    differences = {name: _differing([each.environment for each in group]) for name, group in same.items()}
    named = []
    for each in found:
        name = " ".join([each.experiment, *_words(parameters[each.experiment], each.parameters)])
        suffix = " ".join(_words(differences[each.id], each.environment))
        named.append(replace(each, name=f"{name}, {suffix}" if suffix else name))
    return named


def _words(names: Sequence[str], own: Mapping[str, Any]) -> list[str]:
    return [f"{name}={own[name]}" for name in names if name in own]


def _differing(all_of: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of what is not alike in all."""
    keys = sorted({key for each in all_of for key in each})
    return [key for key in keys if len({str(each.get(key)) for each in all_of}) > 1]
