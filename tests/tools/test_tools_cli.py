"""The command lines of the tools: tables, JSON, and refusals."""

import json

import pytest

from tools import bench, calibrate
from tools.calibrate import Profile


def test_calibrate_prints_its_table_and_says_when_otava_is_missing(monkeypatch, capsys):
    tiny = Profile("quick", ((100, 1, 12),), ("gaussian",), 10, (40,), ("gaussian",), ())
    monkeypatch.setattr(calibrate, "QUICK", tiny)
    code = calibrate.main(["--no-otava"])
    out = capsys.readouterr().out
    assert "| testbed | gaussian | 100 |" in out
    assert "Otava was not measured: left out" in out
    assert calibrate.main(["--no-otava", "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert [row["measure"] for row in document["rows"]] == ["false-alarms"]


@pytest.mark.parametrize("words", [["--scale", "much"], ["--scale", "0"], ["--rows", "0"], ["--series", "-3"]])
def test_bench_refuses_sizes_that_are_none(words):
    with pytest.raises(SystemExit):
        bench.main(words)
