import io
import threading

import pytest
from fakes.checks import FakeCheck

from testbed.setup.check import CheckOutcome, closure, ordered, probe_all
from testbed.setup.fix import FixProgress, put_right


def fix(*checks: FakeCheck) -> CheckOutcome:
    return put_right(checks, probe_all(checks), FixProgress(checks, io.StringIO()))


def test_each_is_fixed_after_what_it_needs() -> None:
    journal: list[str] = []
    image = FakeCheck("image", "engine", journal=journal)
    engine = FakeCheck("engine", "packages", journal=journal)
    packages = FakeCheck("packages", journal=journal)
    assert fix(image, engine, packages).ok
    assert journal == ["packages", "engine", "image"]


def test_a_need_of_a_need_that_is_in_place_is_waited_for() -> None:
    journal: list[str] = []
    release = threading.Event()
    packages = FakeCheck("packages", journal=journal, during=lambda: release.wait(10) and None)
    engine = FakeCheck("engine", "packages", ok=True)
    image = FakeCheck("image", "engine", journal=journal)
    threading.Timer(0.05, release.set).start()
    assert fix(packages, engine, image).ok
    assert journal == ["packages", "image"]


def test_what_is_in_place_is_left_alone() -> None:
    journal: list[str] = []
    assert fix(FakeCheck("a", ok=True, journal=journal), FakeCheck("b", "a", journal=journal)).ok
    assert journal == ["b"]


def test_independent_fixes_run_at_the_same_time() -> None:
    # Each waits for the other: run one after the other they would time out.
    meeting = threading.Barrier(2, timeout=10)
    assert fix(FakeCheck("a", during=meeting.wait), FakeCheck("b", during=meeting.wait)).ok  # type: ignore[arg-type]


def test_a_failure_keeps_what_needs_it_from_being_tried_and_nothing_else() -> None:
    journal: list[str] = []
    outcome = fix(
        FakeCheck("packages", failure="mirror gone", journal=journal),
        FakeCheck("image", "packages", journal=journal),
        FakeCheck("archive", "image", journal=journal),
        FakeCheck("environment", journal=journal),
    )
    assert not outcome.ok
    assert sorted(journal) == ["environment", "packages"]
    assert dict(outcome.failures) == {"packages": "mirror gone"}
    whats = {finding.name: finding.what for finding in outcome.findings}
    assert whats["image"] == "no image (not tried, since this failed: packages)"
    assert whats["archive"] == "no archive (not tried, since this failed: image)"


def test_what_a_need_has_put_right_by_itself_is_not_fixed_again() -> None:
    journal: list[str] = []
    engine = FakeCheck("engine", "packages", journal=journal)

    def start_engine() -> None:
        engine.ok = True

    packages = FakeCheck("packages", during=start_engine, journal=journal)
    assert fix(packages, engine).ok
    assert journal == ["packages"]


def test_a_fix_that_changes_nothing_is_a_failure() -> None:
    useless = FakeCheck("a")
    useless.fix = lambda: None  # type: ignore[method-assign]
    outcome = fix(useless)
    assert not outcome.ok
    assert outcome.failures["a"] == "still so afterwards: no a"


def test_what_is_not_required_may_be_missing() -> None:
    outcome = fix(FakeCheck("netem", required=False, fixable=False), FakeCheck("user", "netem"))
    assert outcome.ok
    assert [finding.ok for finding in outcome.findings] == [False, True]


@pytest.mark.parametrize(
    ("checks", "told"),
    [
        ([FakeCheck("a", "b"), FakeCheck("b", "a")], "go in a circle: a, b"),
        ([FakeCheck("a", "absent")], "unknown or go in a circle: a"),
        ([FakeCheck("a"), FakeCheck("a")], "two checks have one name"),
    ],
)
def test_needs_that_make_no_sense_are_refused(checks: list[FakeCheck], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ordered(checks)


def test_the_closure_has_all_that_is_needed_and_nothing_else() -> None:
    checks = [FakeCheck("c", "b"), FakeCheck("b", "a"), FakeCheck("a"), FakeCheck("other", "a")]
    assert [check.name for check in closure(checks, ["c"])] == ["a", "b", "c"]
