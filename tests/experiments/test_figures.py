from types import SimpleNamespace

from testbed.cli.verdicts import figure_lines
from testbed.experiments.figures import figures


def test_the_strict_quota_is_told_as_a_share_and_what_is_unknown_is_left_out():
    run = SimpleNamespace(move=SimpleNamespace(quota_bytes_per_s=10e6))
    rates = SimpleNamespace(
        host="b2",
        direction="receive",
        highest_window_bytes_per_s=10.37e6,
        highest_second_bytes_per_s=21e6,
        steady=None,
    )
    measures = SimpleNamespace(rates=(rates,), throttled_s=52.0, kip73_s=50.0, kip73_ratio=1.04)
    told = figure_lines(figures(run, measures))
    assert [line.split() for line in told] == [
        ["highest", "11", "s", "b2", "receive", "1.037", "of", "the", "quota"],
        ["highest", "1", "s", "b2", "receive", "2.100", "of", "the", "quota"],
        ["throttled", "part", "52.000", "s"],
        ["KIP-73's", "estimate", "50.000", "s"],
        ["observed", "÷", "estimate", "1.040"],
    ]


def test_a_run_without_a_move_has_no_figures():
    assert figures(SimpleNamespace(move=None), SimpleNamespace()) == ()
