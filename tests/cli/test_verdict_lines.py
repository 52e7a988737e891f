"""The lines of a verdict: a reason is printed once where several criteria share it, and bytes are whole numbers."""

from results.criteria.findings import finding
from testbed.cli.verdicts import criterion_lines


def one(name, verdict, why, observed=1.0):
    return finding(name, "at most 2", verdict, why, observed=observed, series=(), unit="bytes")


def test_a_shared_reason_is_printed_once():
    busy, other = "not judged: machine-load", "not judged: nic-unchanged"
    findings = [
        one("a", "inconclusive", busy),
        one("b", "inconclusive", busy),
        one("c", "pass", busy),
        one("d", "inconclusive", busy),
        one("e", "fail", other),
    ]
    lines = [line.strip() for line in criterion_lines(findings)]
    assert [line.split()[1] if "expected" in line else line for line in lines] == [
        "a", busy, "b", "c", "d", busy, "e", other,
    ]  # fmt: skip


def test_bytes_are_shown_as_whole_numbers():
    (line,) = criterion_lines([one("a", "pass", "", 45_552_912.5)])
    assert "45,552,912 bytes" in line
