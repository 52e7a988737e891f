"""The article's picture: seconds as bars, the formula as a mark beside each."""

from dataclasses import replace

import pyarrow.compute as pc
import pytest

from results.compare.compared_measures import values_of
from results.contract.relocation import CALM, Membership, MembershipStep
from results.criteria import judge
from results.report.relocation import article
from results.report.sweep import Combination, SweepPage, render_sweep
from results.report.tradeoff import formula_picture, growths
from tests.results.relocated import PAYLOAD, TIERED, Told, relocated
from tests.results.synthetic import us


def combination(label, seconds, formula, low=None, high=None):
    ranges = {"move-seconds": (low or seconds, high or seconds), "formula-seconds": (formula, formula)}
    return Combination(label, (label,), {"pass": 1}, {"move-seconds": seconds, "formula-seconds": formula}, ranges)


def test_bars_are_as_long_as_the_seconds_and_marks_as_the_formula():
    picture = formula_picture([combination("disk", 20.0, 16.0, 18.0, 24.0), combination("tiered", 2.0, 16.0)])
    disk, tiered = picture.lines
    assert disk.high == max(line.high for line in picture.lines)
    assert (disk.width, disk.formula) == pytest.approx((disk.high * 20 / 24, disk.high * 16 / 24), rel=1e-3)
    assert tiered.width == pytest.approx(disk.width / 10, rel=1e-2)
    assert tiered.text == "2.0 s, formula 16.0 s"
    assert tiered.y > disk.y


def test_a_long_name_ends_before_its_bar():
    name = "storage=tiered size=1GB partitions=100 load=5MB/s fetch=tuned"
    short, long = (formula_picture([combination(label, 20.0, 16.0)]) for label in ("disk", name))
    assert short.left == 330
    assert 7 * len(name) < long.left < long.left + long.lines[0].width <= long.width - 190


def test_what_has_no_formula_has_no_picture():
    assert formula_picture([Combination("a", (), {}, {"move-seconds": 1.0}, {"move-seconds": (1.0, 1.0)})]) is None


def test_it_is_on_the_page_of_a_comparison_and_nothing_of_a_quota_is():
    found = (combination("storage=disk", 20.0, 16.0), combination("storage=tiered", 2.0, 16.0))
    names = ("move-seconds", "formula-seconds")
    page = render_sweep(
        SweepPage("id", "s3-reassign", "ci", ("storage",), found, names, dict.fromkeys(names, "s"), "", True, (), "x")
    )
    assert "Seconds of the move, compared with log size ÷ NIC" in page
    assert "Observed ÷ quota" not in page


def sized(storage, size, seconds, formula, low=None, high=None):
    return replace(combination(f"{storage} {size}", seconds, formula, low, high), values=(storage, size))


DISK = (
    sized("disk", "300MB", 7.0, 6.4),
    sized("disk", "1GB", 23.0, 21.3, 22.0, 24.0),
    sized("disk", "3GB", 68.0, 64.0),
)
STORED = (sized("tiered", "300MB", 2.0, 6.4), sized("tiered", "3GB", 3.0, 64.0, 2.5, 3.5))


def test_flat_and_linear_are_told_apart_by_how_the_formula_grows():
    disk, tiered = growths(("storage", "size"), (*DISK, *STORED))
    assert (disk.of, disk.word, disk.sizes) == ("storage=disk", "linear", 3)
    assert disk.slope == pytest.approx(1.06, abs=0.01)
    assert (tiered.of, tiered.word) == ("storage=tiered", "flat")
    assert (tiered.low, tiered.high) == pytest.approx((0.5 / 57.6, 1.5 / 57.6))
    assert str(tiered) == (
        "storage=tiered: flat, 0.02 s (0.01 to 0.03) for each second that log size ÷ NIC grows; 2 sizes"
    )


def test_what_scatters_is_neither_and_of_sizes_that_are_alike_nothing_is_told():
    wild = (STORED[0], sized("tiered", "3GB", 8.0, 64.0, 2.0, 30.0))
    (found,) = growths(("storage", "size"), wild)
    assert found.word == "neither flat nor by the formula"
    alike = (STORED[0], sized("tiered", "310MB", 2.0, 6.6))
    assert growths(("storage", "size"), alike) == ()
    assert growths(("storage",), DISK[:1]) == ()
    unknown = Combination("a", ("disk", "1GB"), {}, {}, {})
    assert growths(("storage", "size"), [unknown]) == ()


def test_growth_is_on_the_page():
    names = ("move-seconds", "formula-seconds")
    page = SweepPage(
        "id", "s3", "ci", ("storage", "size"), (*DISK, *STORED), names, dict.fromkeys(names, "s"), "", True, (), "x"
    )
    assert "storage=disk: linear, 1.06 s" in render_sweep(page)


def test_the_measures_that_are_compared():
    manifest, samples, events = relocated(told=TIERED)
    found = values_of(manifest, judge(manifest, samples, events).measures)
    assert found["formula-seconds"] == pytest.approx(300e6 / PAYLOAD)
    assert found["time-vs-log-size"] == pytest.approx(TIERED.seconds / (300e6 / PAYLOAD))
    assert found["inter-broker-bytes"] == pytest.approx(TIERED.copied / 1e6, rel=0.01)
    assert found["longest-ack"] == 900.0
    assert found["busy-cores"] == pytest.approx(TIERED.busy * manifest.machine.cores)
    assert found["store-requests"] >= 20
    unknown = values_of(*_judged(Told(counted=False, done=False)))
    assert not {"store-requests", "time-vs-log-size"} & set(unknown)


def test_of_a_move_that_never_began_no_bytes_are_known():
    manifest, samples, events = relocated(told=TIERED)
    refused = events.filter(pc.not_equal(events["kind"], "move.started"))
    found = values_of(manifest, judge(manifest, samples, refused).measures)
    assert not {"inter-broker-bytes", "move-seconds", "store-requests"} & set(found)


@pytest.mark.parametrize(
    ("change", "asked_s", "steps", "until", "total"),
    [
        ("left", 30.0, {"drained": 30.4, "removed": 31.6}, "it is gone", "14.8 s"),
        ("joined", -10.0, {"registered": -5.0, CALM: -1.0}, "every broker has its share", "18.2 s"),
    ],
)
def test_the_time_of_a_change_is_the_sum_of_its_parts_and_of_the_move(change, asked_s, steps, until, total):
    """The move takes 13.2 s. The runner waits 16.8 s after it, or 4 s for a calm machine and 1 s before it."""
    manifest, *data = relocated(told=Told())
    parts = tuple(MembershipStep(name, us(at_s)) for name, at_s in steps.items())
    member = Membership("b3", change, us(asked_s), parts, registered=change == "joined", container=change == "joined")
    rows = dict(article(manifest, replace(manifest.relocation, membership=member), judge(manifest, *data).measures))
    assert rows[f"From the command until {until}"] == total


def _judged(told):
    manifest, samples, events = relocated(told=told)
    return manifest, judge(manifest, samples, events).measures
