"""Time against a burden: where marks are, what is left out, and that the page shows it."""

import itertools
import re
from dataclasses import replace

import pytest

from results.report.sweep import Combination, SweepPage, columns, render_sweep, row, tradeoffs
from results.report.tradeoff import places, tradeoff
from tests.results.test_results_report import Page


def combination(label, seconds, peak):
    medians = {"move-seconds": seconds} | ({} if peak is None else {"nic-max-1s": peak})
    return Combination(label, (label,), {"pass": 2}, medians, {name: (v * 0.9, v * 1.1) for name, v in medians.items()})


THREE = (combination("unbatched", 30.0, 0.9), combination("batched", 60.0, 0.3), combination("none", 50.0, None))
PAGE = SweepPage(
    "20260101T000000Z-run-0a1b2c",
    "kip435-exchange",
    "ci",
    ("mode",),
    THREE,
    ("move-seconds", "nic-max-1s"),
    {"move-seconds": "s", "nic-max-1s": "of the NIC"},
    "all runs are made",
    True,
    (),
    "testbed run batching-compare",
)


def test_longer_is_further_right_and_more_is_higher_up():
    drawn = tradeoff(THREE, "nic-max-1s", "of the NIC")
    first, second = drawn.marks
    assert (first.label, second.label) == ("unbatched", "batched")
    assert first.x < second.x
    assert first.y < second.y  # upwards is less in a picture
    assert first.left < first.x < first.right
    assert first.high < first.y < first.low
    for mark in drawn.marks:
        assert drawn.across[0][0] <= mark.left and mark.right <= drawn.across[-1][0]
        assert drawn.up[-1][0] <= mark.high and mark.low <= drawn.up[0][0]
    assert (drawn.across[0][1], drawn.up[0][1]) == ("0", "0")
    assert 3 <= len(drawn.up) <= 9


def test_the_axis_is_as_wide_as_the_lines_of_the_picture():
    """Both pictures of the module once shared names of constants: all marks stood in the middle half of this one."""
    lines = set(re.findall(r'<line class="grid" x1="([\d.]+)" x2="([\d.]+)"', render_sweep(PAGE)))
    drawn = tradeoff(THREE, "nic-max-1s", "of the NIC")
    assert lines == {("64", "936")}
    assert (drawn.across[0][0], drawn.across[-1][0]) == (64.0, 936.0)


def test_labels_of_marks_that_are_close_do_not_cover_each_other():
    marks = [(100.0, 50.0), (104.0, 52.0), (102.0, 48.0), (940.0, 50.0), (600.0, 50.0)]
    found = places(["storage=tiered size=1GB"] * 5, marks)
    assert found[0].y < 50.0 < found[1].y  # above its mark, below the next one's
    assert len({place.y for place in found[:3]}) == 3
    heights = sorted(place.y for place in found[:3])
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 12
    assert [place.anchor for place in found[2:]] == ["start", "end", "start"]
    assert found[3].x < 940.0


def test_a_line_leads_from_a_mark_to_a_label_that_is_far_from_it():
    """Of thirteen combinations of R × P most marks are at one place, and their labels stood anywhere."""
    near = [replace(THREE[0], label=f"R={n}") for n in range(6)]
    page = replace(PAGE, combinations=(*near, *THREE))
    (drawn,) = tradeoffs(page)
    far = [mark for mark in drawn.marks if mark.far]
    assert 0 < len(far) < len(drawn.marks)
    assert render_sweep(page).count('class="lead"') == len(far)
    assert 'class="lead"' not in render_sweep(PAGE)


def test_labels_of_very_many_marks_at_one_place_stay_in_the_picture():
    """They once went on downwards without an end, across the axis and out of sight."""
    for height in (14.0, 150.0, 288.0):
        found = places(["batched"] * 60, [(500.0, height)] * 60)
        assert all(14.0 <= place.y <= 288.0 for place in found)
        assert len({place.y for place in found}) >= 15


def test_with_one_mark_there_is_no_trade():
    assert tradeoff(THREE[1:], "nic-max-1s", "") is None
    assert tradeoff(THREE, "produce-p99", "ms") is None
    assert [each.measure for each in tradeoffs(PAGE)] == ["nic-max-1s"]


def test_a_burden_of_nought_has_a_picture_too():
    nothing = [combination("a", 30.0, 0.0), combination("b", 40.0, 0.0)]
    assert len(tradeoff(nothing, "nic-max-1s", "").marks) == 2


def test_the_page_shows_it_and_no_empty_picture_of_rates():
    text = " ".join("".join(Page(render_sweep(PAGE)).text).split())
    assert "nic-max-1s against the time it takes" in text
    assert "batched: 60.0 s, nic-max-1s 0.3 of the NIC" in text
    assert "nothing to draw" not in text
    assert columns(PAGE) == ("mode", "passed", "move-seconds, s", "nic-max-1s, of the NIC")
    assert row(PAGE, THREE[2])[-1] == "–"
    assert "nothing to draw" in "".join(Page(render_sweep(replace(PAGE, combinations=THREE[2:]))).text)


def test_a_mark_stands_at_the_value_that_the_table_gives_in_the_same_unit():
    """A chart once showed microseconds on an axis of milliseconds."""
    slow = [replace(each, medians=each.medians | {"produce-p99": 9830.4}) for each in THREE[:2]]
    slow = [replace(each, ranges=each.ranges | {"produce-p99": (9000.0, 9900.0)}) for each in slow]
    units = PAGE.units | {"produce-p99": "ms"}
    page = replace(PAGE, combinations=tuple(slow), measures=(*PAGE.measures, "produce-p99"), units=units)
    for drawn in tradeoffs(page):
        heading = next(name for name in columns(page) if name.startswith(f"{drawn.measure}, "))
        assert heading == f"{drawn.measure}, {drawn.unit}"
        for mark, each in zip(drawn.marks, slow, strict=True):
            cell = row(page, each)[columns(page).index(heading)]
            assert value_at(mark.y, drawn.up) == pytest.approx(float(cell.split()[0]), rel=0.02)
            seconds = row(page, each)[columns(page).index("move-seconds, s")]
            assert value_at(mark.x, drawn.across) == pytest.approx(float(seconds.split()[0]), rel=0.02)


def value_at(place, ticks):
    """Return the value at a place on an axis, from its first and last tick."""
    (first, low), (last, high) = ticks[0], ticks[-1]
    return float(low) + (place - first) / (last - first) * (float(high) - float(low))
