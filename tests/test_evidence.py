"""Every criterion was seen to fail on real brokers: `docs/measurements/criteria.md` has the run."""

from results.contract.verdict import Finding
from results.criteria.judgement import catalogue
from tools.evidence import ROWS, Demonstration, add, load, page, rows_of


def finding(name, verdict="fail", why="it was so", host=None):
    return Finding(name, host, None, "", 1.0, "", "", verdict, why, ())


def test_every_criterion_has_a_run_in_which_it_did_not_hold():
    shown = {row.criterion for row in load()}
    assert set(catalogue()) == shown, "see tests/containers/test_demonstrations.py"


def test_the_page_is_written_from_the_rows():
    assert ROWS.with_suffix(".md").read_text() == page(load())


def test_a_row_for_each_criterion_that_did_not_hold():
    findings = [
        finding("steady-mean"),
        finding("steady-mean", host="b2"),
        finding("handover-order"),
        finding("polling-agrees.DescribeTopics"),
        finding("3-cancelled.answer"),
        finding("move-done", verdict="pass"),
    ]
    rows = rows_of(findings, "defect `x`", "r", "4.3.1")
    assert [row.criterion for row in rows] == ["steady-mean", "handover", "polling-agrees", "scenario-steps"]
    assert rows_of(findings, "", "r", "4.3.1", "inconclusive") == []


def test_a_later_run_of_a_cause_replaces_the_earlier_one_and_three_causes_stay(tmp_path):
    def row(cause, run_id):
        return Demonstration("steady-mean", cause, "fail", "a | b", run_id, "4.3.1")

    path = tmp_path / "rows.json"
    add([row("a", "1"), row("b", "2"), row("c", "3")], path)
    add([row("a", "5"), row("d", "4")], path)
    assert [(each.cause, each.run_id) for each in load(path)] == [("a", "5"), ("c", "3"), ("d", "4")]
    text = path.with_suffix(".md").read_text()
    assert "| `steady-mean` | a | fail | a \\| b | 5 | 4.3.1 |" in text
