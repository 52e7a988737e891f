"""Reorganised code judges every recorded run as the code before it did."""

import pytest

from results.contract.aliases import criterion_name, measure_name
from tests.golden.verdicts import example, expected, judged, recorded

RELATIVE = 1e-9
ADDED = {
    "highest-1s",
    "rest-seconds",
    "produce-gap",
    "consume-gap",
    "produce-p50",
    "consume-p50",
    "produce-p999",
    "busy-cores",
}
"""Measures that came after the recording: a run has their values in addition."""


def same(before, now):
    if isinstance(before, int | float) and isinstance(now, int | float):
        return abs(before - now) <= RELATIVE * max(abs(before), abs(now))
    return before == now


def differences(before, now):
    """Yield a line for each difference of one run's judgements."""
    for field in ("verdict", "exit"):
        if before[field] != now[field]:
            yield f"{field}: {before[field]} before, {now[field]} now"
    place = lambda c: (criterion_name(c[0]), *c[1:3])  # noqa: E731
    old, new = (sorted(([*place(c), *c[3:]] for c in each["criteria"]), key=repr) for each in (before, now))
    if len(old) != len(new):
        yield f"criteria: {[c for c in old if c not in new]} before, {[c for c in new if c not in old]} now"
    else:
        yield from (f"{b} before, {n} now" for b, n in zip(old, new, strict=True) if not all(map(same, b, n)))
    values = {measure_name(name): value for name, value in before["values"].items()}
    for name in sorted((values.keys() | now["values"].keys()) - ADDED):
        if not same(values.get(name), now["values"].get(name)):
            yield f"{name}: {values.get(name)} before, {now['values'].get(name)} now"


@pytest.mark.parametrize("runs", [recorded, example])
def test_every_recorded_run_is_judged_as_before(runs):
    wanted = dict(expected()[runs.__name__])
    found = {}
    for run in runs():
        if lines := list(differences(wanted.pop(run[0]), judged(run))):
            found[run[0]] = lines
    assert found == {}
    assert wanted == {}, "these runs are gone"


def test_the_recorded_runs_are_of_every_verdict():
    runs = [run for kind in expected().values() for run in kind.values()]
    assert {run["exit"] for run in runs} == {0, 1, 2}
    assert len(expected()["example"]) == 222
    assert len({criterion[0] for run in runs for criterion in run["criteria"]}) > 40
