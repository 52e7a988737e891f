"""`testbed results changes`: forms, exit codes and refusals; the judging itself is tested with `changes`."""

import json

import pytest

from results.series import noise_estimation
from results.series.changes import ChangePoint, SeriesChanges
from testbed.cli import histories
from testbed.cli.main import main

POINT = ChangePoint("step", 2, 1, 4, 10.0, 12.0, (1.0, 3.0), 0.2, (0.1, 0.3), 0.003, "worse")
FROM_ZERO = ChangePoint("drift", 3, 2, 11, 0.0, 3.0, (2.0, 4.0), None, None, 1e-9, "unknown")


@pytest.fixture
def judged(monkeypatch):
    """What is found instead of judging: in `seconds` two changes; gives what was asked."""
    asked = []

    def give(series, *, better, seed):
        asked.append((list(series), better, seed))
        return {
            name: SeriesChanges(
                len(values),
                sum(value is not None for value in values),
                (POINT, FROM_ZERO) if name == "seconds" else (),
            )
            for name, values in series.items()
        }

    monkeypatch.setattr(histories, "changes_of", give)
    return asked


@pytest.fixture
def history(tmp_path):
    """Twelve runs, two series, one of them with two values."""
    path = tmp_path / "history.csv"
    rows = [f"c{at},{at},{at if at < 2 else ''}" for at in range(12)]
    path.write_text("\n".join(["commit,seconds,few", *rows]), encoding="utf-8")
    return path


def test_a_line_a_change_and_a_summary(judged, history, capsys):
    assert main(["results", "changes", str(history), "--time", "commit", "--better", "lower", "--seed", "7"]) == 0
    said = capsys.readouterr()
    head, step, drift, empty, summary = said.out.splitlines()
    assert head.split()[0] == "SERIES" and empty == ""
    for words in ("seconds", "step", "worse", "c2 ← c1", "10 → 12", "+20.0%", "+10.0% to +30.0%", "0.003", "c4"):
        assert f" {words} " in f" {step} "
    for words in ("drift", "–", "c3 ← c2", "0 → 3", "+3", "+2 to +4", "1e-09", "c11"):
        assert f" {words} " in f" {drift} "
    assert summary == (
        f"{history}: 2 changes in 1 of 2 series, 12 runs; too few values to say anything, of 10 it takes: few (2)"
    )
    assert judged == [(["seconds", "few"], "lower", 7)]
    assert f"{history}: 12 runs, 2 series" in said.err


def test_json_tells_runs_by_index_and_label(judged, history, capsys):
    assert main(["results", "changes", str(history), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (file,) = document["files"]
    assert (document["seed"], document["better"], file["file"], file["runs"]) == (1, None, str(history), 12)
    assert "commit" in file["notes"][0]
    seconds, few = file["series"]
    first, second = seconds["changes"]
    assert first["first_bad"] == {"index": 2, "label": "#2"}
    assert first["last_good"] == {"index": 1, "label": "#1"}
    assert first["reported"] == {"index": 4, "label": "#4"}
    assert (first["interval"], first["difference"]) == ([0.1, 0.3], [1.0, 3.0])
    assert (first["kind"], first["p"], first["meaning"]) == ("step", 0.003, "worse")
    assert (second["effect"], second["interval"]) == (None, None)
    assert (few["too_few"], few["used"], few["runs"], few["changes"]) == (True, 2, 12, [])


def test_each_file_is_judged_by_itself(judged, history, tmp_path, capsys):
    other = tmp_path / "other.json"
    other.write_text("[1, 2, 3]", encoding="utf-8")
    assert main(["results", "changes", str(other), str(history)]) == 0
    assert [names for names, _, _ in judged] == [["values"], ["seconds", "few"]]
    assert f"{other}: 0 changes in 0 of 1 series, 3 runs" in capsys.readouterr().out
    assert main(["results", "changes", str(other)]) == 2


def test_what_was_sorted_is_said(judged, tmp_path, capsys):
    path = tmp_path / "h.csv"
    path.write_text("day,a\n2026-01-02,1\n2026-01-01,2\n", encoding="utf-8")
    assert main(["results", "changes", str(path), "--time", "day", "--column", "a"]) == 2
    assert "sorted by day: it did not ascend in the file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["{}", "--column", "secnds"], "there is no column 'secnds'; there are: commit, seconds, few"),
        (["{}", "--column", "commit"], "line 2, column 'commit': 'c0' is no number"),
        (["{}", "--seed", "-1"], "--seed -1: expected 0 or more"),
        (["{}", "{}.not"], "cannot be read: No such file"),
        (["{}", "--better", "up"], "invalid choice: 'up'"),
        ([], "required: FILE"),
    ],
)
def test_refusals_come_before_any_judging(judged, history, words, told, capsys):
    try:
        code = main(["results", "changes", *(word.format(history) for word in words)])
    except SystemExit as stopped:
        code = stopped.code
    assert code == 64
    assert told in capsys.readouterr().err
    assert judged == []


def test_help_says_what_it_does_not_judge(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["results", "changes", "--help"])
    assert ended.value.code == 0
    assert "nothing of tonight" in capsys.readouterr().out


def test_from_the_file_to_the_change(monkeypatch, tmp_path, capsys):
    """All of it, with few shuffles; the same seed tells the same."""
    monkeypatch.setattr(noise_estimation, "FEWEST_DRAWN", 3000)
    monkeypatch.setattr(noise_estimation, "EVENTS", 1)
    path = tmp_path / "h.json"
    path.write_text(json.dumps([5] * 20 + [6] * 4), encoding="utf-8")
    assert main(["results", "changes", str(path), "--better", "higher"]) == 0
    told = capsys.readouterr().out
    for words in ("values", "step", "better", "#20 ← #19", "5 → 6", "+20.0%", "#22"):
        assert words in told
    assert "1 change in 1 of 1 series, 24 runs" in told
    assert main(["results", "changes", str(path), "--better", "higher"]) == 0
    assert capsys.readouterr().out == told
