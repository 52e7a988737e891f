"""`testbed bench` with commands that end at once: what is kept of a play, and what is said of it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from results.contract.store import Store
from results.nights.ingest import rows_of
from results.report.render import render
from testbed.cli.main import main
from testbed.runner import bench
from testbed.runner.bench import CommandTiming, TimedCommand, chosen, run_bench

QUICK = (
    TimedCommand("version", "the program starts", ("--version",), limit_s=60.0),
    TimedCommand("unknown", "a command that is refused", ("no-such-command",), "pair"),
    TimedCommand("after", "what follows a failure", ("--version",), "pair"),
    TimedCommand("late", "a limit that nothing holds", ("--version",), limit_s=0.001),
)


@pytest.fixture
def quick(monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "FIGURES", QUICK)
    return tmp_path / "store"


def test_every_play_is_a_run_with_its_time_its_commit_and_a_verdict(quick, capsys):
    assert main(["bench", "version", "--repeats", "2", "--store", str(quick), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    [figure] = told["figures"]
    assert figure["verdicts"] == ["pass", "pass"]
    assert all(0 < seconds < 60 for seconds in figure["seconds"])
    store = Store.open(quick)
    assert sorted(store.runs()) == sorted(told["runs"])
    for run in told["runs"]:
        found = {row["metric"]: row for row in rows_of(store, run, {})}
        assert found["command.seconds"]["better"] == "lower"
        assert found["command.seconds"]["value"] in [pytest.approx(each) for each in figure["seconds"]]
        assert found["command.cpu_seconds"]["value"] > 0
        assert found["command.seconds"]["commit"] == store.manifest(run).versions.commit
        assert "figure" in found["command.seconds"]["parameters"]


def test_a_command_that_fails_is_a_failed_run_without_a_time_and_its_group_goes_on(quick, capsys):
    assert main(["bench", "after", "--repeats", "1", "--store", str(quick)]) == 1
    told = capsys.readouterr().out
    assert "1 fail" in told
    assert "there is no command 'no-such-command'" in told
    store = Store.open(quick)
    runs = {store.manifest(run).parameters["figure"]: run for run in store.runs()}
    assert set(runs) == {"unknown", "after"}
    [finding] = store.criteria(runs["unknown"])
    assert finding.verdict == "fail"
    assert "exit code 64" in finding.why
    assert store.samples(runs["unknown"]).num_rows == 0
    page = render(*_of(store, runs["unknown"]))
    assert "own commands" in page
    assert "exit code 64" in page


def _of(store, run):
    from results.criteria import judge

    manifest, samples, events = store.manifest(run), store.samples(run), store.events(run)
    judged = judge(manifest, samples, events)
    return manifest, samples, events, judged.criteria, judged.measures


def test_a_limit_that_is_exceeded_fails_and_keeps_the_time(quick, capsys):
    assert main(["bench", "late", "--repeats", "1", "--store", str(quick), "--json"]) == 1
    [figure] = json.loads(capsys.readouterr().out)["figures"]
    assert figure["verdicts"] == ["fail"]
    assert len(figure["seconds"]) == 1


def test_an_unknown_figure_and_no_repeats_are_refused_before_anything_is_made(quick, capsys):
    assert main(["bench", "verison", "--store", str(quick)]) == 64
    assert "did you mean version?" in capsys.readouterr().err
    assert main(["bench", "--repeats", "0", "--store", str(quick)]) == 64
    assert not Path(quick).exists()


def test_what_comes_up_goes_away_in_the_same_group():
    for figure in chosen(["status-two-brokers"]):
        assert figure.together == "two-brokers"
    assert [figure.words[0] for figure in chosen(["up-two-brokers"])] == ["up", "status", "down"]


def test_an_interruption_leaves_no_testbed(monkeypatch, quick):
    """Ctrl-C in `status` left the brokers of `up` running."""
    played = []

    def play(figure, testbed):
        played.append(figure.words[0])
        if figure.words[0] == "status":
            raise KeyboardInterrupt
        return CommandTiming(figure, datetime.now(UTC), 0.1, 0.1, 0)

    monkeypatch.setattr(bench, "FIGURES", bench._standing("two-brokers", "two brokers"))
    monkeypatch.setattr(bench, "play", play)
    with pytest.raises(KeyboardInterrupt):
        run_bench((), 1, str(quick), lambda _line: None)
    assert played == ["up", "status", "down"]
