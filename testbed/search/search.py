"""The search: draw, play, judge; what breaks an invariant is confirmed, shrunk, confirmed again and written."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from testbed.errors import TestbedError
from testbed.faults.fault import Fault
from testbed.search.coverage import Coverage
from testbed.search.database import Database, Outcome
from testbed.search.discovery import Discovery, write
from testbed.search.draft import Draft
from testbed.search.reduction import smallest, sound
from testbed.search.space import Space

UNDIRECTED = 3
"""One in so many tries is drawn without regard to what was seen."""
CANDIDATES = 8
"""Incidents drawn for each try. The one with the most pairs that were not seen is played."""
CONFIRMED, MOST_CONFIRMING = 3, 9
"""A found incident must fail in this many replays, of at most so many."""
FIRST_REPLAYS = 3
"""Replays on new testbeds in which a failure must come again once, before it is shrunk."""
MOST_VOID = 5
"""Tries in a row that may be void, before the search gives up."""
MOST_REPLAYS = 60
"""Replays that may make one found incident smaller."""
MOST_OPEN = 3
"""Replays of one incident in a row that may leave its invariant open, before it counts as not judged."""
Play = Callable[[Draft, bool], Outcome]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """When a search ends: after so many findings or tries, if any."""

    findings: int | None = None
    tries: int | None = None


@dataclass(slots=True)
class SearchResult:
    """The result of a search so far. `unconfirmed` failures did not come again on a new testbed."""

    found: list[Discovery] = field(default_factory=list)
    unconfirmed: list[str] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    kinds: tuple[str, ...] = ()
    tries: int = 0
    judged: int = 0
    void: list[str] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    """Invariant → in how many tries it could not be judged."""
    kept: Counter[str] = field(default_factory=Counter)
    """Invariant → in how many tries it held."""
    again: Counter[str] = field(default_factory=Counter)
    """Invariant → in how many tries it failed after it had been found."""
    why_ended: str = ""

    @property
    def exit_code(self) -> int:
        """Return 1 when an incident was found, 0 when none was, 2 when no try could be judged."""
        return 1 if self.found else 0 if self.judged else 2


def candidate(space: Space, faults: Mapping[str, type[Fault]], seed: int, number: int, coverage: Coverage) -> Draft:
    """Return the incident of a try: of those that the seed draws for it, the one that aims at the most new pairs.

    Such an incident has many faults, which hide what a broker does without one. So some tries take the first one drawn.
    """
    if number % UNDIRECTED == 1:
        return space.draw(random.Random(f"{seed}/{number}/0"), faults)
    drawn = [space.draw(random.Random(f"{seed}/{number}/{place}"), faults) for place in range(CANDIDATES)]
    return max(drawn, key=coverage.new)


class Search:
    """One search. Everything that it asks goes to the database first, so that it can be resumed."""

    def __init__(
        self,
        space: Space,
        database: Database,
        play: Play,
        spent_s: Callable[[], float],
        budget_s: float,
        limits: SearchLimits,
        progress: Progress,
    ) -> None:
        self._space, self._database, self._play = space, database, play
        self._spent_s, self._budget_s, self._limits, self._progress = spent_s, budget_s, limits, progress
        self._slowest_s = 0.0
        self._asked_s = 0.0
        """Seconds of all answers, also of the tries before a kill."""
        self.result = SearchResult()

    def run(self) -> SearchResult:
        """Search until the budget or a limit is reached, and return the result."""
        faults = self._space.faults()
        result, void = self.result, 0
        result.kinds = tuple(faults)
        while not (why := self._ended()):
            result.tries += 1
            draft = candidate(self._space, faults, self._database.settings.seed, result.tries, result.coverage)
            result.coverage.aim(draft)
            outcome = self._ask(draft, False, f"try {result.tries}")
            self._count(outcome)
            void = void + 1 if outcome.void else 0
            if void >= MOST_VOID:
                raise TestbedError(
                    f"{MOST_VOID} tries in a row could not be judged; the last: {outcome.void}. Remove the cause, then "
                    f"continue with `testbed search --resume {self._database.folder}`"
                )
            known = {each.invariant for each in result.found}
            result.again.update(known & outcome.failed.keys())
            for name in [name for name in outcome.failed if name not in known]:
                found = self._examined(draft, name, outcome.failed[name])
                if found is not None:
                    result.found.append(found)
                    break  # the others often have the same cause; a later try shows those that have not
        result.why_ended = why
        return result

    def _ended(self) -> str:
        result, limits = self.result, self._limits
        if limits.findings is not None and len(result.found) >= limits.findings:
            return f"{len(result.found)} incidents were found"
        if limits.tries is not None and result.tries >= limits.tries:
            return f"{result.tries} tries were made"
        return "" if self._has_time(1) else "the budget ended"

    def _has_time(self, replays: int) -> bool:
        return self._spent_s() + replays * self._slowest_s < self._budget_s

    def _ask(self, draft: Draft, fresh: bool, what: str) -> Outcome:
        outcome, played = self._database.answer(draft, fresh, lambda: self._play(draft, fresh))
        self._slowest_s = max(self._slowest_s, outcome.seconds if played else 0.0)
        self._asked_s += outcome.seconds
        steps = ", ".join(step.kind for step in draft.steps) or "no step"
        words = (outcome.void and f"void: {outcome.void}") or ", ".join(outcome.failed) or "no invariant failed"
        if outcome.unknown and not outcome.failed and not outcome.void:
            words += f" ({len(outcome.unknown)} not judged)"
        self._progress(f"{what}: {steps}: {words}" + ("" if played else " (from the database)"))
        return outcome

    def _count(self, outcome: Outcome) -> None:
        result = self.result
        result.judged += outcome.judged
        result.coverage.add(outcome.pairs)
        if outcome.void:
            result.void.append(outcome.void)
        result.unknown.update(outcome.unknown.keys())
        result.kept.update(outcome.kept)

    def _judged(self, draft: Draft, invariant: str, what: str) -> Outcome | None:
        """Return a replay on a new testbed in which the invariant was judged; None after `MOST_OPEN` others."""
        for _attempt in range(MOST_OPEN):
            outcome = self._ask(draft, True, what)
            if not outcome.void and invariant not in outcome.unknown:
                return outcome
        return None

    def _examined(self, draft: Draft, invariant: str, why: str) -> Discovery | None:
        """Confirm a failure on new testbeds, shrink it, and confirm it again; None when it does not come again."""
        result, found_s = self.result, self._asked_s
        what = f"{invariant} on a new testbed"
        attempts, first = 1, self._judged(draft, invariant, what)
        while first is not None and invariant not in first.failed and attempts < FIRST_REPLAYS:
            attempts, first = attempts + 1, self._judged(draft, invariant, what)
        if first is None or invariant not in first.failed:
            unknown = "; its replays could not be judged" if first is None else ""
            result.unconfirmed.append(f"{invariant} in try {result.tries}: {why}{unknown}")
            return None
        replays, cut = 0, False

        def fails(smaller: Draft) -> bool:
            nonlocal replays, cut
            if not sound(smaller):
                return False
            # What failed at the second or third attempt fails sometimes: one pass does not say that it never does.
            for _attempt in range(attempts):
                if replays >= MOST_REPLAYS or not self._has_time(CONFIRMED):
                    cut = True
                    return False
                replays += 1
                outcome = self._judged(smaller, invariant, f"shrinking {invariant}, replay {replays}")
                cut = cut or outcome is None
                if outcome is not None and invariant in outcome.failed:
                    return True
            return False

        small = smallest(draft, fails)
        failed, of, last_why = 0, 0, why
        while failed < CONFIRMED and of < MOST_CONFIRMING and (not of or self._has_time(1)):
            outcome = self._judged(small, invariant, f"confirming {invariant}, replay {of + 1}")
            if outcome is None:
                break
            of += 1
            if invariant in outcome.failed:
                failed, last_why = failed + 1, outcome.failed[invariant]
        if failed == 0 or (failed < CONFIRMED and of == MOST_CONFIRMING):
            result.unconfirmed.append(f"{invariant} in try {result.tries}: {failed} of {of} last replays failed: {why}")
            return None
        found = Discovery(
            invariant=invariant,
            why=last_why,
            draft=small,
            tries=result.tries,
            from_steps=len(draft.steps),
            replays=replays,
            found=failed,
            of=of,
            minimal=not cut and failed >= CONFIRMED,
            found_s=round(found_s, 1),
            shrunk_s=round(self._asked_s - found_s, 1),
        )
        brokers = len(self._space.brokers)
        path = write(found, self._database.settings, self._database.folder, len(result.found) + 1, brokers)
        self._progress(f"written: {path}")
        return replace(found, file=path)
