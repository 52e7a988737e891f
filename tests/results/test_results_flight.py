"""The lines of a move in steps: where they begin, step and end."""

import pytest

from results.contract.schema import Sample, samples_table
from results.criteria import judge
from results.criteria.sample_series import RunSeries
from results.report.charts import HEIGHT, LEFT, WIDTH, flights
from results.report.render import render
from tests.results.moves import simulate
from tests.results.scenes import one_to_two
from tests.results.test_results_burden import WHERE
from tests.results.test_results_report import Page


def stepped(levels):
    """A move at which the controller's list was looked at, at these seconds: (second, partitions)."""
    run = simulate(one_to_two(2e6, flapping=("b1", 20.0)))
    measures = judge(run.manifest, run.samples, run.events).measures
    samples = [
        Sample(int(row["ts"].timestamp() * 1e6), row["host"], row["metric"], row["value"], *(row[w] for w in WHERE))
        for row in run.samples.to_pylist()
    ]
    looks = [Sample(measures.started_us + int(at * 1e6), "driver", "move.listed", float(value)) for at, value in levels]
    return run, measures, samples_table([*samples, *looks])


LEVELS = ((0.0, 5), (10.0, 5), (20.0, 2), (30.0, 4), (40.0, 0))


def test_a_line_steps_where_the_number_changes_and_ends_with_the_last_look():
    run, measures, samples = stepped(LEVELS)
    flying, in_sync = flights(measures, RunSeries(samples, run.events))
    points = [tuple(map(float, point.split(","))) for point in flying.points.split()]
    assert (points[0][0], points[-1][0]) == (LEFT, WIDTH)
    assert len(points) == 2 + 2 * 3
    middle = LEFT + (WIDTH - LEFT) / 2
    assert [x for x, _y in points if x == pytest.approx(middle, abs=0.1)] == [middle] * 2
    assert all(0 <= y <= HEIGHT for _x, y in points)
    assert (flying.summary, in_sync.summary) == ("at most 5", "at least 1")
    assert [label for _x, label in flying.across] == ["0 s", "10 s", "20 s", "30 s"]


def test_a_move_at_once_that_nobody_watched_has_none():
    run = simulate(one_to_two(2e6))
    measures = judge(run.manifest, run.samples, run.events).measures
    assert flights(measures, RunSeries(run.samples, run.events)) == ()


def test_the_report_shows_them_and_each_nics_use():
    run, measures, samples = stepped(LEVELS)
    criteria = judge(run.manifest, samples, run.events).criteria
    text = " ".join("".join(Page(render(run.manifest, samples, run.events, criteria, measures)).text).split())
    assert "Partitions being reassigned: at most 5" in text
    assert "Highest second" in text


def test_a_label_of_a_short_move_is_the_time_of_its_place():
    """A mark at 2.5 s had the label *2 s*, one at 7.5 s the label *8 s*."""
    run, measures, samples = stepped(((0.0, 5), (5.0, 2), (10.0, 0)))
    flying, *_ = flights(measures, RunSeries(samples, run.events))
    assert [label for _x, label in flying.across] == ["0 s", "2.5 s", "5 s", "7.5 s"]


def test_the_picture_has_the_width_of_the_page():
    """In a column of three its labels were 4 px high."""
    run, measures, samples = stepped(LEVELS)
    criteria = judge(run.manifest, samples, run.events).criteria
    text = render(run.manifest, samples, run.events, criteria, measures)
    assert text.index('id="flight-h"') < text.index('<div class="pair">') < text.index('id="nic-h"')
