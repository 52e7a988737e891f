from types import SimpleNamespace

from testbed.cli.verdicts import figure_lines
from testbed.experiments.reports import figures


def test_the_strict_quota_is_told_as_a_share_and_what_is_unknown_is_left_out():
    move = SimpleNamespace(quota_bytes_per_s=10e6, window_s=11.0, model_seconds=50.7, model_why="", kip73_seconds=50.0)
    run = SimpleNamespace(move=move, run_id="r")
    rates = SimpleNamespace(
        host="b2",
        direction="receive",
        highest_window_bytes_per_s=10.37e6,
        highest_second_bytes_per_s=21e6,
        steady=None,
        steady_bytes_per_s=None,
    )
    times = {"throttled_s": 52.0, "moved_s": 52.0, "done_s": 52.5, "kip73_s": 50.0, "kip73_ratio": 1.04}
    measures = SimpleNamespace(rates=(rates,), phases=(), **times)
    told = figure_lines(figures(run, measures))
    assert [line.split() for line in told] == [
        ["highest", "11", "s", "b2", "receive", "1.037", "of", "the", "quota"],
        ["highest", "1", "s", "b2", "receive", "2.100", "of", "the", "quota"],
        ["throttled", "part", "52.000", "s"],
        ["the", "model's", "estimate", "50.700", "s"],
        ["its", "error", "-2.500", "%"],
        ["KIP-73's", "estimate", "50.000", "s"],
        ["observed", "÷", "estimate", "1.040"],
    ]


def test_each_phase_is_told_by_its_own_quota():
    rates = SimpleNamespace(
        host="b2", direction="receive", highest_second_bytes_per_s=None, steady=None, steady_bytes_per_s=None
    )
    first, second = (SimpleNamespace(highest_window_bytes_per_s=value, **vars(rates)) for value in (8e6, 12e6))
    phases = (
        SimpleNamespace(quota_bytes_per_s=8e6, rates=(first,)),
        SimpleNamespace(quota_bytes_per_s=12e6, rates=(second,)),
    )
    move = SimpleNamespace(quota_bytes_per_s=8e6, window_s=22.0, model_seconds=None, model_why="", kip73_seconds=0.0)
    times = dict.fromkeys(("throttled_s", "moved_s", "done_s", "kip73_ratio"))
    measures = SimpleNamespace(rates=(), phases=phases, kip73_s=0.0, **times)
    told = figures(SimpleNamespace(move=move, run_id="r"), measures)
    assert [(f.name, f.value) for f in told] == [("highest 22 s, phase 1", 1.0), ("highest 22 s, phase 2", 1.0)]


def test_a_run_without_a_move_has_no_figures():
    assert figures(SimpleNamespace(move=None), SimpleNamespace()) == ()
