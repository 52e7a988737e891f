"""docs/qualifying.md says what the code does."""

from pathlib import Path
from typing import get_args

from results.compare.effect import at_least
from results.compare.judgement import ComparisonRule, Verdict
from results.compare.scenario_judgement import CERTAIN, ENOUGH
from results.verdicts import EXIT
from testbed.runner.qualification_plan import PAIRED, UNTHROTTLED, kind_of, plan
from testbed.runner.qualification_scope import PAIRS, SPARES, SUITES, QualificationScope

PAGE = (Path(__file__).parents[2] / "docs" / "qualifying.md").read_text()


def test_numbers_and_verdicts():
    assert (CERTAIN, ENOUGH, PAIRS, len(PAIRED), ComparisonRule().family) == (3, 2, 10, 3, 0.05)
    assert SPARES == 3 and "up to three in a scenario" in PAGE
    for bad, b, p in ((4, 0, "0.043"), (6, 1, "0.029"), (3, 0, "0.11")):
        assert f"{bad} against {b} (p = {p})" in PAGE
        assert p == f"{at_least(bad, PAIRS, bad + b, 2 * PAIRS):.2g}"
    for verdict in get_args(Verdict):
        [row] = [each for each in PAGE.splitlines() if each.startswith(f"| {verdict} |")]
        assert row.endswith(f"| {EXIT[verdict]} |")
    assert all(f"`{suite}`" in PAGE for suite in SUITES)
    groups = plan("4.3.1", ["4.2.1"], QualificationScope())[1]
    kinds = [kind_of(group) for group in groups]
    assert f"there are {kinds.count('once')} scenarios once" in PAGE
    assert kinds.count("paired") == 4 and f"and {kinds.count('paired')} scenarios × 20 runs" in PAGE
    assert f"`{UNTHROTTLED}`" in PAGE
    assert [len(group.labels) for group in groups if kind_of(group) == "upgrade"] == [3]
