"""A run judged again: in what that differs from how it was judged when it was recorded. Pure.

Rules change, records do not. What was recorded stays in the store, as it was judged then; whoever judges a run anew
tells where the rules of today say otherwise, instead of letting one verdict stand for both.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from results.contract.verdict import Finding, Verdict


@dataclass(frozen=True, slots=True)
class Changed:
    """A criterion that is judged otherwise; None: not judged at all. `why` is today's, or of then if there is none."""

    criterion: str
    then: Verdict | None
    now: Verdict | None
    why: str

    def __str__(self) -> str:
        then = self.then or "not judged"
        now = self.now or "not judged"
        return f"{self.criterion}: {then} when it was recorded, {now} now: {self.why}"


def changes(recorded: Iterable[Finding], again: Iterable[Finding]) -> tuple[Changed, ...]:
    """What is judged otherwise than it was recorded, in today's order; then what is not judged any more."""
    then, now = ({_key(each): each for each in criteria} for criteria in (recorded, again))
    found = []
    for key in dict.fromkeys([*now, *then]):
        before, after = then.get(key), now.get(key)
        was, is_now = before.verdict if before else None, after.verdict if after else None
        if was != is_now:
            why = after.why if after else before.why if before else ""
            found.append(Changed(key, was, is_now, why))
    return tuple(found)


def _key(criterion: Finding) -> str:
    where = " ".join(word for word in (criterion.host, criterion.direction) if word)
    return f"{criterion.name} ({where})" if where else criterion.name
