"""A sweep's page: every combination drawn and told, also where nothing is known."""

import re
from dataclasses import replace

import pytest

from results.report.sweep import Combination, SweepPage, as_markdown, columns, picture, render_sweep, row
from tests.results.test_results_report import Page


def combination(rate, fetch, observed=0.98, **others):
    medians = {"move-seconds": 60.0} if observed is None else {"move-seconds": 60.0, "steady-mean": observed}
    ranges = {name: (value, value) for name, value in medians.items()}
    if observed is not None:
        medians |= {"lowest-11s": observed - 0.02, "highest-11s": observed + 0.02, "quota-bound-11s": 1.3}
        ranges |= {name: (medians[name] - 0.01, medians[name] + 0.01) for name in medians if name != "move-seconds"}
    return Combination(f"rate={rate} fetch={fetch}", (rate, fetch), others or {"pass": 2}, medians, ranges)


def sweep(*combinations, **others):
    fields = {
        "id": "20261121T200000Z-sweep-0a1b2c",
        "experiment": "kip73-two-node",
        "profile": "ci",
        "axes": ("rate", "fetch"),
        "combinations": combinations,
        "measures": ("move-seconds", "steady-mean", "highest-11s", "lowest-11s", "quota-bound-11s"),
        "units": {"move-seconds": "s"},
        "ended": "all runs are made",
        "complete": True,
        "not_passed": (),
        "command": "testbed sweep kip73-two-node --set 'rate=2MB/s,5MB/s'",
        **others,
    }
    return SweepPage(**fields)


FOUR = sweep(*(combination(rate, fetch) for rate in ("2MB/s", "5MB/s") for fetch in ("default", "tuned")))


def test_each_combination_is_a_point_in_its_group_and_a_row_of_the_table():
    drawn = picture(FOUR)
    assert [label for _x, label in drawn.groups] == ["2MB/s", "5MB/s"]
    assert drawn.styles == ("fetch=default", "fetch=tuned")
    assert [point.style for point in drawn.points] == [0, 1, 0, 1]
    xs = [point.x for point in drawn.points]
    assert xs == sorted(set(xs))
    middle = drawn.groups[0][0]
    assert middle - xs[0] == pytest.approx(xs[1] - middle)
    for point in drawn.points:
        # Upwards is less in a picture: high above the middle, the bound above all, the quota between.
        assert point.bound < drawn.quota_y < point.y < point.low
        assert point.bound < point.high < point.y
        assert drawn.ticks[-1][0] <= point.bound and point.low <= drawn.ticks[0][0]
    assert row(FOUR, FOUR.combinations[0]) == (
        "2MB/s", "default", "2 of 2", "0.980 (0.970 to 0.990)", "0.950 to 1.010", "1.300", "60.0",
    )  # fmt: skip
    assert len(columns(FOUR)) == 7
    assert columns(FOUR)[-1] == "move-seconds, s"


def test_the_page_is_whole_and_says_it_all():
    page = Page(render_sweep(FOUR))
    text = " ".join("".join(page.text).split())
    assert "All passed" in text
    assert "4 combinations of rate, fetch; all runs are made." in text
    assert text.count("0.980 (0.970 to 0.990)") == 4 * 2  # in the picture's titles, and in the table
    assert page.tags.count("script") == 0
    assert not re.search(r"https?://", render_sweep(FOUR))


def test_runs_that_could_not_be_judged_are_told_and_not_drawn():
    page = sweep(
        combination("2MB/s", "default", None, inconclusive=2),
        combination("2MB/s", "tuned", fail=1, **{"pass": 1}),
        not_passed=("run-1 fail: steady-mean",),
    )
    drawn = picture(page)
    assert [point.y is None for point in drawn.points] == [True, False]
    assert row(page, page.combinations[0])[2:6] == ("0 of 2", "–", "–", "–")
    text = "".join(Page(render_sweep(page)).text)
    assert "Some failed" in text
    assert "run-1 fail: steady-mean" in text
    nothing = sweep(combination("2MB/s", "default", None, inconclusive=1), not_passed=("run-1 inconclusive",))
    assert picture(nothing) is None
    assert "there is nothing to draw" in "".join(Page(render_sweep(nothing)).text)
    assert "Not all passed" in "".join(Page(render_sweep(replace(FOUR, complete=False))).text)


def test_one_combination_and_values_far_from_the_quota_have_a_picture_too():
    alone = replace(sweep(combination("2MB/s", "tuned", 7.3)), axes=(), measures=("steady-mean",))
    alone = replace(alone, combinations=(replace(alone.combinations[0], values=()),))
    drawn = picture(alone)
    assert [label for _x, label in drawn.groups] == ["rate=2MB/s fetch=tuned"]
    assert 3 <= len(drawn.ticks) <= 9
    assert columns(alone)[0] == "combination"
    assert "rate=2MB/s fetch=tuned" in "".join(Page(render_sweep(alone)).text)


def test_names_cannot_break_the_page_or_the_table():
    evil = "</svg><script>alert(1)</script>|"
    page = sweep(combination(evil, "tuned"), combination("5MB/s", "tuned"), not_passed=(evil,), command=evil)
    assert Page(render_sweep(page)).tags.count("script") == 0
    lines = as_markdown(page).splitlines()
    assert lines[0].startswith("| rate | fetch | passed | observed ÷ quota |")
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {8}


def test_long_names_of_groups_do_not_cover_each_other():
    names = [f"topologies/of/mine/brokers-{number}.yaml" for number in range(8)]
    drawn = picture(sweep(*(combination(name, "tuned") for name in names)))
    assert [label[0] for _x, label in drawn.groups] == ["…"] * 8
    assert len({label for _x, label in drawn.groups}) == 8
    apart = drawn.groups[1][0] - drawn.groups[0][0]
    assert all(7 * len(label) <= apart + 1 for _x, label in drawn.groups)
