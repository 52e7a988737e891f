"""A history of one's own: every change of it, at its place, whatever form the values come in."""

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest

from results.series import noise_estimation
from results.series.changes import ChangePoint, SeriesChanges, changes, replay
from results.series.decision import ChangeRule
from testbed.cli.main import main
from tools.simulation import store

PAGE = (Path(__file__).parents[2] / "docs" / "series.md").read_text(encoding="utf-8")


def stepped(calm, at, factor):
    return [value * (factor if i >= at else 1) for i, value in enumerate(calm)]


@pytest.fixture
def few_shuffles(monkeypatch):
    """Learning in some milliseconds, roughly: for what is learned as a history grows."""
    monkeypatch.setattr(noise_estimation, "FEWEST_DRAWN", 3000)
    monkeypatch.setattr(noise_estimation, "EVENTS", 1)


@pytest.mark.parametrize("unit", [1e-140, 1e-90, 1e90, 1e140])
def test_the_unit_of_the_values_does_not_matter(few_shuffles, unit):
    """The squares of such variances have no float: the interval once ended in a ZeroDivisionError or OverflowError."""
    values = stepped([1 + 0.01 * (i * 7919 % 11 - 5) / 5 for i in range(40)], 30, 1.5)
    (plain,), (scaled,) = changes(values).changes, changes([value * unit for value in values]).changes
    assert (scaled.first_bad, scaled.reported) == (plain.first_bad, plain.reported) == (30, 32)
    assert scaled.difference == pytest.approx(tuple(end * unit for end in plain.difference), rel=1e-6)


@pytest.mark.parametrize(
    ("factor", "better", "meaning"),
    [
        (1.2, "lower", "worse"),
        (1.2, "higher", "better"),
        (0.8, "lower", "better"),
        (0.8, "higher", "worse"),
        (1.2, None, "unknown"),
    ],
)
def test_a_step_is_found_where_it_is_and_told_for_better_or_worse(noise, calm, factor, better, meaning):
    found = changes(stepped(calm, 40, factor), better=better, noise=noise)
    assert (found.runs, found.used, found.too_few) == (60, 60, False)
    one = found.changes[0]
    assert abs(one.first_bad - 40) <= 1 and one.last_good == one.first_bad - 1
    assert 41 <= one.reported <= 44
    assert one.kind != "drift" and one.meaning == meaning
    assert one.effect == pytest.approx(factor - 1, abs=0.04)
    assert one.difference[0] < one.after - one.before < one.difference[1]
    assert one.interval == pytest.approx([each / one.before for each in one.difference])
    assert one.p <= ChangeRule().night


def test_the_whole_history_is_judged_and_not_only_its_newest_runs(noise, calm):
    values = [*calm, *(1.3 * value for value in calm), *calm]
    found = changes(values, better="lower", noise=noise)
    assert [(one.first_bad, one.last_good, one.meaning) for one in found.changes] == [
        (60, 59, "worse"),
        (120, 119, "better"),
    ]
    assert all(one.reported - one.first_bad <= 3 for one in found.changes)


def test_missing_values_neither_hide_a_change_nor_shift_it(noise, calm):
    nothing = (None, math.nan, math.inf, -math.inf)
    values = [nothing[i % 4] if i % 5 == 1 or i == 40 else value for i, value in enumerate(stepped(calm, 40, 1.2))]
    found = changes(values, noise=noise)
    assert (found.runs, found.used) == (60, 60 - 12 - 1)
    assert [(one.first_bad, one.last_good) for one in found.changes] == [(42, 39)]
    assert values[found.changes[0].reported] not in nothing


def test_lists_tuples_arrays_and_integers_are_the_same(noise, calm):
    whole = [round(10 * value) for value in stepped(calm, 40, 1.2)]
    wanted = changes([float(value) for value in whole], noise=noise)
    assert len(wanted.changes) == 1
    array = np.array(whole)
    for values in (whole, tuple(whole), array, array.astype(np.float32), array.astype(object), list(array)):
        assert changes(values, noise=noise) == wanted


def test_what_is_masked_or_none_in_an_array_is_missing(noise, calm):
    values = np.array(stepped(calm, 40, 1.2))
    holes = np.arange(60) % 7 == 3
    wanted = changes(np.where(holes, np.nan, values), noise=noise)
    assert wanted.used == 60 - 9
    assert changes(np.ma.MaskedArray(values, holes), noise=noise) == wanted
    assert changes(np.where(holes, None, values), noise=noise) == wanted


def test_constants(noise):
    assert changes([5.0] * 40, noise=noise).changes == ()
    (one,) = changes([5] * 30 + [6] * 10, noise=noise).changes
    assert (one.first_bad, one.last_good, one.reported) == (30, 29, 32)
    assert (one.before, one.after, one.effect, one.difference) == (5.0, 6.0, pytest.approx(0.2), (1.0, 1.0))
    (one,) = changes([0] * 30 + [3] * 10, better="higher", noise=noise).changes
    assert (one.effect, one.interval, one.difference, one.meaning) == (None, None, (3.0, 3.0), "better")


@pytest.mark.parametrize(
    ("values", "used"),
    [([], 0), ([1.0] * 9, 9), ([None] * 60, 0), ([1.0, None] * 9, 9), (np.zeros(0), 0), (np.full(30, np.nan), 0)],
)
def test_too_few_values_are_said_to_be_too_few(values, used):
    """Without a noise given: there is none to learn, and nobody asks for it."""
    found = changes(values)
    assert (found.runs, found.used, found.too_few, found.changes) == (len(values), used, True, ())


def test_several_series_are_one_family_with_directions_by_name(noise, calm):
    series = {
        "seconds": stepped(calm, 40, 1.2),
        "MB/s": np.array(stepped(calm, 20, 0.7)),
        "calm": tuple(calm),
        "new": [None] * 55 + [1.0] * 5,
    }
    found = changes(series, better={"seconds": "lower", "MB/s": "higher"}, noise=noise)
    assert list(found) == list(series)
    assert [one.meaning for one in found["seconds"].changes] == ["worse"]
    assert [one.meaning for one in found["MB/s"].changes] == ["worse"]
    alone = changes(series["seconds"], noise=noise).changes
    assert [one.first_bad for one in found["seconds"].changes] == [one.first_bad for one in alone] == [40]
    assert found["calm"].changes == () and not found["calm"].too_few
    assert (found["new"].used, found["new"].too_few) == (5, True)
    assert changes({}, noise=noise) == {}


def test_more_than_a_hundred_series_need_more_evidence(noise, calm):
    alone = changes(stepped(calm, 40, 1.2), noise=noise).changes[0]
    many = changes({str(i): [5.0] * 60 for i in range(199)} | {"it": stepped(calm, 40, 1.2)}, noise=noise)
    one = many["it"].changes[0]
    assert one.p == pytest.approx(2 * alone.p) or one.reported > alone.reported


def test_it_finds_what_replay_finds_of_the_same_matrix(noise):
    values = store(np.random.default_rng(5), "gaussian", 60, 12, 0.03)
    values[30:, 3] *= 1.2
    values[45:, 3] *= 0.8
    values[40:, 9] *= 0.85
    values[25:, 5] *= np.linspace(1, 1.6, 35)
    found = changes({str(at): values[:, at] for at in range(12)}, noise=noise)
    wanted = [each for night in replay(values, lambda _night, _block: noise) for each in night]
    assert {each.series for each in wanted} >= {3, 5, 9}
    assert sorted(
        (int(name), one.reported, one.first_bad, one.after) for name, each in found.items() for one in each.changes
    ) == sorted((each.series, each.night, each.night + 1 - each.change.runs, each.change.after) for each in wanted)


def test_what_counts_can_be_another_rule(noise, calm):
    values = stepped(calm, 40, 1.2)
    assert changes(values, rule=ChangeRule(least=0.5), noise=noise).changes == ()


def test_the_noise_is_learned_as_the_history_grows_and_the_seed_decides(few_shuffles, calm):
    values = stepped(calm, 35, 1.09)[:50]  # less than `ChangeRule.large`, whose test draws nothing
    one, other = changes(values), changes(values, seed=2)
    assert one == changes(values, seed=1)
    for found in (one, other):
        assert any(abs(each.first_bad - 35) <= 1 for each in found.changes)
    assert one != other


def test_series_that_have_not_begun_make_no_night_one_of_learning(monkeypatch, noise, calm):
    """It takes some tenths of a second each time, and the median of all three is 0 runs on every night."""
    asked = []
    monkeypatch.setattr(noise_estimation, "learn", lambda block, seed, night, each: asked.append(seed) or noise)
    changes(calm)
    alone = len(asked)
    changes({"one": calm, "two": [None] * 60, "three": [None] * 60})
    assert len(asked) == 2 * alone <= 40


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1.0, "x"], "values, position 1: 'x' is no number; None where a run has no value"),
        ([1.0, True], "position 1: True is no number"),
        (["1.0"], "position 0: '1.0' is no number"),
        (np.ones((3, 2)), "values: an array of 2 dimensions: expected 1; several series go in by name"),
        ([[1.0], [2.0]], r"position 0: \[1.0\] is no number.*several series go in by name"),
        ("12345", "values: str: expected a list, a tuple or a 1-D array"),
        (5.0, "values: float: expected a list"),
        (None, "values: NoneType: expected a list"),
        ([1e200], r"position 0: 1e\+200: beyond"),
        ([10**400], "position 0: beyond"),
        ({"a": [1.0], "b": [1.0, 2.0]}, "series 'b' has 2 runs, 'a' has 1"),
        ({"a": [1.0, "x"]}, "series 'a', position 1"),
        ({"a": {"b": 1.0}}, "series 'a': dict: expected a list"),
    ],
)
def test_what_is_no_history_is_refused_with_its_place(values, told):
    with pytest.raises(ValueError, match=told):
        changes(values)


@pytest.mark.parametrize(
    ("values", "options", "told"),
    [
        ({"a": [1.0]}, {"better": {"b": "lower"}}, "better: there is no series 'b'; there are: 'a'"),
        ({}, {"better": {"b": "lower"}}, "there are: none"),
        ([1.0], {"better": "up"}, "better 'up': expected lower or higher"),
        ({"a": [1.0]}, {"better": {"a": "up"}}, "better 'up'"),
        ([1.0], {"better": {"a": "lower"}}, "better: one series has one direction"),
        ([1.0], {"seed": -1}, "seed -1: expected 0 or more"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(values, options, told):
    with pytest.raises(ValueError, match=told):
        changes(values, **options)


def test_a_night_alone_sees_the_newest_runs_only(judged, noise, calm):
    """Why there is `changes`: the change is in the history, and no news of its last night."""
    values = [*calm, *(1.3 * value for value in calm)]
    assert judged(values).change is None
    assert len(changes(values, noise=noise).changes) == 1


def test_the_page_names_every_field_and_option(capsys):
    """docs/series.md tells the truth."""
    for field in (*dataclasses.fields(ChangePoint), *dataclasses.fields(SeriesChanges)):
        assert f"`{field.name}`" in PAGE
    with pytest.raises(SystemExit):
        main(["results", "changes", "--help"])
    told = capsys.readouterr().out
    for option in re.findall(r"--[a-z]+", next(line for line in PAGE.splitlines() if "results changes FILE" in line)):
        assert f"{option} " in told
