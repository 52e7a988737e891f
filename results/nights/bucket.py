"""A bucket of series judged on a worker: an Arrow table of their runs in, a line of state for each series out. Pure.

All failed criteria count, except criteria that failed here before as often by chance.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.compare.effect import at_least
from results.compare.log_lines import NewLines, new_lines
from results.contract.texts import digits
from results.nights.judged_runs import (
    ChangeUpdate,
    DetectedChange,
    JudgedRuns,
    OpenChange,
    SeriesRuns,
    judge_runs,
    lessons,
    night_of,
    noise_by_night,
)
from results.nights.state import NEVER, SeriesState, SeriesVerdict
from results.nights.values import FAILED
from results.series.block import MOST_RUNS, TO_SIGMA, Bools, Floats, Ints
from results.series.calculator import FEWEST_RUNS_TO_JUDGE
from results.series.decision import LevelChange
from results.series.history import History, ReportedChange
from results.series.judge import Better, Judge, direction, verdict
from results.series.noise_estimation import LearnedNoise
from results.verdicts import rank

Failures = frozenset[str]
"""The criteria that failed in one run."""
CRITERION_BY_CHANCE = 0.01
"""So unlikely a share of tonight's runs fails a criterion that fails now and then, and it counts again."""
UNNAMED = "a criterion"
"""Of runs that an earlier version took in, only the number of failed criteria is known."""


def parse_failures(names: str | None, count: float) -> Failures:
    """Return the failures of a run from the names in its row; without names, that some criterion failed."""
    return frozenset(names.split("; ")) if names else frozenset({UNNAMED} if count > 0 else ())


def counting(earlier: Sequence[Failures], tonight: Sequence[Failures]) -> list[str]:
    """Return the criteria whose failure tonight counts, of runs in order.

    A failure counts, unless the criterion failed in some of `FEWEST_RUNS_TO_JUDGE` or more earlier runs, and chance
    explains that many failures tonight: its probability is above `CRITERION_BY_CHANCE`. Runs directly before, in which
    it failed, too, are counted as tonight's: what goes on failing is no chance.
    """
    return sorted(name for name in frozenset().union(*tonight) if not _by_chance(name, earlier, tonight))


def _by_chance(name: str, earlier: Sequence[Failures], tonight: Sequence[Failures]) -> bool:
    failed = [name in each for each in earlier]
    streak = next((number for number, each in enumerate(reversed(failed)) if not each), len(failed))
    runs = len(failed) - streak
    before, now = sum(failed[:runs]), streak + sum(name in each for each in tonight)
    if runs < FEWEST_RUNS_TO_JUDGE or not before:
        return False
    new = streak + len(tonight)
    return at_least(now, new, before + now, runs + new) > CRITERION_BY_CHANCE


BEFORE = 30
"""The number of a canary's readings before a change that are compared with those since."""
SIGMAS = 4.0
LIMITS: Mapping[str, tuple[float, float, int]] = {
    "canary.nic": (0.03, 0.0, -1),
    "canary.transfer": (0.05, 0.0, 1),
    "canary.cpu": (0.10, 0.0, 1),
    "canary.memory": (1.0, 0.0, 1),
    "canary.fsync": (1.0, 0.0, 1),
    "canary.steal": (0.0, 0.02, 1),
}
"""Canary → the change, as a fraction of its level and on its own scale, up to which it does not count; and where it
goes when the machine gets worse (0: not known)."""
CANARY_BY_CHANCE = 0.05
"""So many of the windows before may have lain as far off, for a reading to say anything."""
OTHER_LIMIT = (0.10, 0.0, 0)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Runs of some series: `names`, `places` (scenario and environment), `better` and `metrics` have one entry a
    series, `ids`, `failed` (the names of failed criteria), `logged` (the kinds of log lines) and `tested` one a run."""

    names: list[str]
    places: list[str]
    metrics: list[str]
    better: list[str]
    runs: SeriesRuns
    ids: pa.Array
    failed: pa.Array
    logged: pa.Array
    tested: pa.Array

    @classmethod
    def of(cls, table: pa.Table) -> "Bucket":
        """Return the bucket of rows in any order; one that is there twice counts once.

        The columns are `series`, `place`, `metric`, `better`, `at`, `run_id`, `value`, `failed`, `logged`, `tested`.
        """
        order = pc.sort_indices(table, [("series", "ascending"), ("at", "ascending"), ("run_id", "ascending")])
        table = table.take(order).combine_chunks()
        series = table.column("series").combine_chunks().dictionary_encode()
        ids = table.column("run_id").combine_chunks()
        texts = (table.column(name).combine_chunks() for name in ("failed", "logged", "tested"))
        codes = np.asarray(series.indices)
        keep = np.ones(len(codes), bool)
        same = np.asarray(pc.equal(ids[1:], ids[:-1])) if len(codes) > 1 else np.zeros(0, bool)
        keep[1:] = ~(same & (codes[1:] == codes[:-1]))
        at = np.asarray(table.column("at").combine_chunks().cast(pa.int64()))
        values = table.column("value").to_numpy(zero_copy_only=False).astype(np.float64)
        kept = np.flatnonzero(keep)
        starts = np.append(np.searchsorted(codes[kept], np.arange(len(series.dictionary))), len(kept))
        head = table.take(kept[starts[:-1]])
        names, places, metrics, better = (
            head.column(name).to_pylist() for name in ("series", "place", "metric", "better")
        )
        runs = SeriesRuns(starts, at[kept], values[kept])
        taken = pa.array(kept)
        return cls(names, places, metrics, better, runs, ids.take(taken), *(text.take(taken) for text in texts))

    def only(self, wanted: Sequence[int]) -> "Bucket":
        """Return the table of these series."""
        spans = [np.arange(self.runs.starts[i], self.runs.starts[i + 1]) for i in wanted]
        rows = np.concatenate(spans) if spans else np.zeros(0, np.int64)
        starts = np.concatenate([[0], np.cumsum([len(span) for span in spans])]).astype(np.int64)
        runs = SeriesRuns(starts, self.runs.at[rows], self.runs.values[rows])
        names, places, metrics, better = (
            [words[i] for i in wanted] for words in (self.names, self.places, self.metrics, self.better)
        )
        taken = pa.array(rows)
        texts = (text.take(taken) for text in (self.ids, self.failed, self.logged, self.tested))
        return Bucket(names, places, metrics, better, runs, *texts)

    def of_series(self, i: int) -> tuple[Ints, Floats]:
        """Return (times, values) of one series."""
        span = slice(int(self.runs.starts[i]), int(self.runs.starts[i + 1]))
        return self.runs.at[span], self.runs.values[span]


def judge_bucket(
    table: pa.Table,
    states: Mapping[str, str],
    known: Sequence[LearnedNoise],
    judge: Judge,
    family: int,
    begun: int | None = None,
) -> list[SeriesState]:
    """Return what is to be remembered, and what was said, of each series of the table.

    A night that is known to have `begun` at a time has the runs since then, else those of its date (`night_of`).
    """
    bucket = Bucket.of(table)
    before = [_state(bucket, i, states) for i in range(len(bucket.names))]
    judged = [i for i, better in enumerate(bucket.better) if better != "canary"]
    own, own_before = bucket.only(judged), [before[i] for i in judged]
    edges, open_ones = _edges(own_before), _newest(own, own_before)
    came = judge_runs(own.runs, *edges, noise_by_night(list(known)), judge, family, open_ones)
    after = {i: replace(_canary(bucket, i), history=before[i].history) for i in range(len(before)) if i not in judged}
    canaries: dict[str, list[int]] = {}
    for i in after:
        canaries.setdefault(bucket.places[i], []).append(i)
    for at, i in enumerate(judged):
        found = [each for each in came.found if each.series == at]
        better = better_of(bucket.better[i])
        own_canaries = canaries.get(bucket.places[i], [])
        causes = {each: _cause(bucket, own_canaries, own, each, better) or unchanged(own, each) for each in found}
        state = _judged(own, at, before[i], came, causes, better, judge)
        after[i] = replace(state, said=_tonight(bucket, own_canaries, own, at, state.said, before[i].judged, begun))
    return [after[i] for i in sorted(after)]


def learn_from(
    table: pa.Table, states: Mapping[str, str], known: LearnedNoise | None, judge: Judge, family: int, seed: int
) -> list[LearnedNoise]:
    """Return what the series of the table teach, night by night."""
    bucket = Bucket.of(table)
    before = [_state(bucket, i, states) for i in range(len(bucket.names))]
    return lessons(bucket.runs, *_edges(before), known, seed, judge, family)


def _state(bucket: Bucket, i: int, states: Mapping[str, str]) -> SeriesState:
    text = states.get(bucket.names[i])
    return SeriesState.from_json(text) if text else SeriesState(bucket.names[i], metric=bucket.metrics[i])


def _edges(states: Sequence[SeriesState]) -> tuple[Ints, Ints]:
    """Return where each series' baseline begins, and up to where it was judged."""
    baseline = [micros(s.history.baseline) if s.history.baseline else NEVER for s in states]
    return np.array(baseline, np.int64), np.array([s.judged for s in states], np.int64)


def _newest(own: Bucket, states: Sequence[SeriesState]) -> dict[int, OpenChange]:
    """Return each series' newest change that no user acknowledged; a drift may have begun before these runs."""
    found = {}
    for at, state in enumerate(states):
        newest = state.history.reported[-1] if state.history.reported else None
        if newest is None or newest.acknowledged is not None:
            continue
        begin, end = int(own.runs.starts[at]), int(own.runs.starts[at + 1])
        ids = own.ids.slice(begin, end - begin).to_pylist()
        if newest.first_bad in ids:
            found[at] = OpenChange(newest.change, begin + ids.index(newest.first_bad))
        elif newest.change.kind == "drift":
            found[at] = OpenChange(newest.change, begin)
    return found


def _canary(bucket: Bucket, i: int) -> SeriesState:
    at, _ = bucket.of_series(i)
    since = int(at[-min(len(at), MOST_RUNS)])
    return SeriesState(
        bucket.names[i], metric=bucket.metrics[i], judged=int(at[-1]), since=since, said=SeriesVerdict("OK")
    )


def _judged(
    own: Bucket,
    at: int,
    before: SeriesState,
    came: JudgedRuns,
    causes: Mapping[DetectedChange, str],
    better: Better,
    judge: Judge,
) -> SeriesState:
    """Return the state of one series after its newest night."""
    grown = [each for each in came.grown if each.series == at]
    history, known_causes, new = _history(own, before.history, list(causes), grown), dict(before.causes), []
    for (found, why), reported in zip(causes.items(), history.reported[len(before.history.reported) :], strict=True):
        word = "ENV-CHANGED" if why else direction(found.change, better)
        new.append(SeriesVerdict(word, why or unknown(found.change, better), reported=reported))
        if why:
            known_causes[reported.first_bad] = why
    times, values = own.of_series(at)
    finite = np.flatnonzero(np.isfinite(values))
    judgement, oldest = came.judgements[at], int(came.oldest[at])
    since = int(own.runs.at[oldest]) if oldest >= 0 else before.since
    if not history.baseline and len(finite) < MOST_RUNS:
        since = NEVER  # the window has room: what lands late, and is older, belongs to it
    if judgement is None:
        return replace(before, since=since)
    # What several nights found that are judged at once, none of them reported: the worst of it is. (Of a store that
    # was never judged, whose nights are replayed, only the last one is tonight.)
    if before.judged == NEVER:
        tonight = int(night_of(times[finite[-1:]])[0])
        new = [said for said, found in zip(new, causes, strict=True) if int(found.night) == tonight]
    said = min(
        reversed(new),
        key=lambda said: rank(said.verdict),
        default=SeriesVerdict(verdict(judgement, better, judge.rule)),
    )
    said = replace(
        said,
        runs=judgement.runs,
        score=judgement.score,
        chance=judgement.chance,
        detectable=judgement.detectable,
    )
    judged = int(times[finite[-1]]) if len(finite) else before.judged
    return replace(before, history=history, causes=known_causes, since=since, judged=judged, said=said)


def _tonight(
    bucket: Bucket, canaries: Sequence[int], own: Bucket, at: int, said: SeriesVerdict, judged: int, begun: int | None
) -> SeriesVerdict:
    """Return what is said of a series, with what its newest night shows by itself. Runs up to `judged` were judged.

    See `judge_bucket` for `begun`.
    """
    times, values = own.of_series(at)
    rows = np.flatnonzero(np.isfinite(values))
    if not len(rows):
        return said
    nights = night_of(times[rows])
    is_tonight = nights == nights[-1] if begun is None or times[rows[-1]] < begun else times[rows] >= begun
    now, before = rows[is_tonight], rows[~is_tonight][-MOST_RUNS:]
    failed = ""
    lines: tuple[NewLines, ...] = ()
    if own.metrics[at] == FAILED:
        logged = own.logged.slice(int(own.runs.starts[at]), len(values)).to_pylist()
        # Of a store that was never judged, only the newest night is tonight.
        late = times > judged if judged != NEVER else np.zeros(len(times), bool)
        lines = _new_lines(logged, before, now, late)
        names = own.failed.slice(int(own.runs.starts[at]), len(values)).to_pylist()
        earlier, tonight = ([parse_failures(names[row], values[row]) for row in part] for part in (before, now))
        if counted := counting(earlier, tonight):
            ran = sum(not each.isdisjoint(counted) for each in tonight)
            failed = f"{', '.join(counted)} failed in {ran} of {len(now)} runs"
    machine = _moved_canary(bucket, canaries, int(times[now[0]]), int(times[now[-1]]), worse=True)
    low, high = float(np.min(values[now])), float(np.max(values[now]))
    return replace(said, low=low, high=high, failed=failed, machine=machine, lines=lines)


def _new_lines(logged: Sequence[str | None], before: Ints, now: Ints, late: Bools) -> tuple[NewLines, ...]:
    """Return the new kinds of log lines of a series' runs, of which `before` and `now` are rows.

    A run whose logs were not read whole says nothing. `late` are the runs that no night has judged.
    """
    earlier, tonight = (
        [frozenset(json.loads(text)) for row in part if (text := logged[row])] for part in (before, now)
    )
    return new_lines(earlier, tonight, sum(bool(late[row]) for row in before if logged[row]))


def _history(own: Bucket, before: History, found: Sequence[DetectedChange], grown: Sequence[ChangeUpdate]) -> History:
    """Return what was reported of a series, with what was found, and what became of it, since."""
    reported = list(before.reported)
    for each in found:
        ids = (own.ids[row].as_py() for row in (each.first_bad, each.last_good, each.newest))
        reported.append(ReportedChange(each.change, *ids))
    for one in grown:
        place = len(before.reported) - 1 + one.report
        reported[place] = replace(reported[place], change=one.change)
    begins = [each.baseline for each in found] + [one.baseline for one in grown if one.baseline is not None]
    return History(iso(int(own.runs.at[max(begins)])) if begins else before.baseline, tuple(reported))


def _cause(bucket: Bucket, canaries: Sequence[int], own: Bucket, found: DetectedChange, better: Better) -> str:
    """Return what of the machine changed with it, in words; empty when nothing did that canaries tell."""
    first, last = int(own.runs.at[found.first_bad]), int(own.runs.at[found.newest])
    worse = None if better == "unknown" else direction(found.change, better) == "REGRESSED"
    told = _moved_canary(bucket, canaries, first, last, found.change.effect, worse=worse)
    return f"{told} with it" if told else ""


def _moved_canary(
    bucket: Bucket, canaries: Sequence[int], first: int, last: int, effect: float | None = None, *, worse: bool | None
) -> str:
    """Return the first canary that `moved` between two times, in words; empty when none did."""
    for i in canaries:
        at, values = bucket.of_series(i)
        finite = np.isfinite(values)
        old = values[finite & (at < first)][-BEFORE:]
        new = values[finite & (at >= first) & (at <= last)]
        if moved(bucket.metrics[i], old, new, effect, worse=worse):
            return f"{bucket.metrics[i]} went from {digits(float(np.median(old)))} to {digits(float(np.median(new)))}"
    return ""


FEWEST_UNCHANGED = 2
"""The fewest runs between the night's begin and the change: one alone may be at the level of before by chance."""


def unchanged(own: Bucket, found: DetectedChange) -> str:
    """Return that the change began in mid-night, among runs of one Kafka; empty when Kafka may be its cause.

    The runs directly before the first bad one are of the same night, and the same jars, image and topology were tested
    in all of them. They are at the level of before. The first bad run is known within one run.
    """
    if own.metrics[found.series] == FAILED:  # a failure by chance says nothing of the run before it
        return ""
    begin = int(own.runs.starts[found.series])
    tested = own.tested.slice(begin, found.first_bad - begin + 1).to_pylist()
    times, values = own.runs.at[begin : found.first_bad + 1], own.runs.values[begin : found.first_bad + 1]
    tonight = night_of(times) == night_of(times[-1:])[0]
    good = np.abs(values - found.change.before) < np.abs(values - found.change.after)
    rows = np.flatnonzero(np.isfinite(values))[:-1].tolist()
    if rows and not good[rows[-1]]:
        rows.pop()
    runs = 0
    for row in reversed(rows):
        if tested[row] is None or tested[row] != tested[-1] or not (tonight[row] and good[row]):
            break
        runs += 1
    if runs < FEWEST_UNCHANGED:
        return ""
    return f"the {runs} runs before it, of the same night, Kafka, image and topology, do not have it"


def moved(metric: str, old: Floats, new: Floats, effect: float | None = None, *, worse: bool | None = None) -> bool:
    """Return whether a canary's level changed by more than its limit and its readings' own noise, and seldom so before.

    Of a change to be explained (`effect`, a fraction) half as much is enough. With `worse` it is one for the worse or
    for the better: a better machine makes nothing worse.
    """
    if len(old) < 3 or not len(new):
        return False
    level, step = float(np.median(old)), float(np.median(new) - np.median(old))
    fraction, least, bad = LIMITS.get(metric, OTHER_LIMIT)
    if worse is not None and step * bad * (1 if worse else -1) < 0:
        return False
    if effect is not None and not least:
        fraction = min(fraction, abs(effect) / 2)
    sigma = TO_SIGMA * float(np.median(np.abs(old - level)))
    error = 1.2533 * sigma * math.sqrt(1 / len(old) + 1 / len(new))
    if abs(step) <= max(fraction * abs(level), least) or abs(step) <= SIGMAS * error:
        return False
    if len(new) > len(old):
        return True
    before = np.median(np.lib.stride_tricks.sliding_window_view(old, len(new)), axis=1)
    return float(np.mean(np.abs(before - level) >= abs(step))) <= CANARY_BY_CHANCE


def better_of(word: str) -> Better:
    """Return the part of a row of the values table that describes its metric."""
    return "lower" if word == "lower" else "higher" if word == "higher" else "unknown"


def unknown(change: LevelChange, better: Better) -> str:
    """Return a note that the change may be for the better or for the worse; empty where that is known."""
    went = "up" if change.after > change.before else "down"
    return f"direction unknown: it went {went}, and nothing says which way is better" if better == "unknown" else ""


def iso(at: int) -> str:
    """Return microseconds since the epoch as ISO 8601, UTC.

    The texts have the same length always, so that they sort as times do.
    """
    return (EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def micros(text: str) -> int:
    """Return the time of an `iso` text in microseconds since the epoch."""
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)
