"""docs/comparing.md says what the code does."""

import shlex
from pathlib import Path
from typing import get_args

import pytest

from results.compare.canaries import LIMITS
from results.compare.compared_measures import measures
from results.compare.effect import confidence, cut
from results.compare.judgement import ComparisonRule, Verdict
from testbed.cli.main import main
from testbed.runner.canary import CPU_BLOCKS, CPU_ROUNDS
from testbed.runner.comparison import PAIRS_BEFORE_EARLY_END
from testbed.runner.testbed_pool import MOST_KEPT

PAGE = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text()
RUN = "./run "
COMMANDS = [line.removeprefix(RUN) for line in PAGE.split("```")[1].splitlines() if line.startswith(f"{RUN}testbed ")]


def test_the_page_has_examples():
    assert len(COMMANDS) > 3


@pytest.mark.parametrize("line", COMMANDS)
def test_the_examples_are_understood(doors, line, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where what they write goes
    code, told = main(shlex.split(line)[1:]), capsys.readouterr()
    if "--resume" in line:
        assert "there is no campaign" in told.err
    else:
        assert code in (0, 2), told.err  # the fake runs have one measure only


def test_canaries_measures_and_verdicts_are_all_there():
    for canary, limit in LIMITS.items():
        [row] = [line for line in PAGE.splitlines() if line.startswith(f"| `{canary}` |")]
        assert row.endswith(f"| {limit * 100:.0f} % |")
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    for measure in measures():
        assert [row for row in rows if f"`{measure.name}`" in row[1] and row[2].strip() == measure.better], measure.name
        if measure.resolution is not None:
            [row] = [row for row in rows if f"`{measure.name}`" in row[1] and row[2].strip() != measure.better]
            assert row[2].strip() == f"{measure.resolution:g} {measure.unit}"
    for verdict in get_args(Verdict):
        assert f"| {verdict} |" in PAGE
    assert f"sha256 over {CPU_BLOCKS} MiB on one core, median of {CPU_ROUNDS} rounds" in PAGE
    assert f"from {PAIRS_BEFORE_EARLY_END} pairs on" in PAGE
    assert (MOST_KEPT, ComparisonRule().threshold, ComparisonRule().family, ComparisonRule().fewest_pairs) == (
        8,
        0.03,
        0.05,
        5,
    )


def test_the_confidences_are_those_of_the_code():
    told = ", ".join(f"{confidence(n, cut(n, 0.05)) * 100:.1f}" for n in range(6, 11))
    assert f"93.8 % for 5 pairs (the widest there is), {told} % for 6 to 10" in PAGE
    assert confidence(5, cut(5, 0.05)) == 0.9375
    later = [confidence(n, cut(n, 0.05)) for n in range(11, 101)]
    assert min(later) >= 0.95 and max(later) < 0.9585
