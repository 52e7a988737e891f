"""`testbed results mute` and `floor`: kept in the store, listed, removed, and refused when they cannot be meant."""

import json
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from results.contract.store import Store
from results.nights import policies, values_table
from testbed.cli.main import main
from testbed.cli.store_maintenance import parse_until
from testbed.errors import UsageError
from tests.nights.replayed import RECORDED

NOW = datetime(2026, 11, 24, tzinfo=UTC)


@pytest.fixture
def results(tmp_path, capsys):
    def call(*words):
        code = main(["results", *words, "--store", str(tmp_path)])
        return code, capsys.readouterr().out

    return call


def test_a_mute_is_kept_listed_and_removed(results, tmp_path):
    assert results("mute") == (0, "nothing is muted\n")
    code, told = results("mute", "move:seconds", "--reason", "a new disk", "--until", "14d", "--by", "ann")
    assert code == 0
    assert "no judged series has this name" in told
    (mute,) = policies.load(Store.open(tmp_path)).mutes
    assert (mute.series, mute.reason, mute.by) == ("move:seconds", "a new disk", "ann")
    assert results("mute")[1] == f"move:seconds: muted until {mute.until} by ann: a new disk\n"
    assert results("mute", "move:seconds", "--remove") == (0, "nothing is muted\n")


def test_a_floor_is_kept_listed_and_removed(results, tmp_path):
    results("floor", "move quota=1:seconds", "--never-above", "30")
    assert results("floor", "move:steady-mean", "--never-below", "0.8")[0] == 0
    results("floor", "move:steady-mean", "--remove")
    code, told = results("floor", "move:rate", "--never-below", "0.8")
    assert (code, told.splitlines()[-2:]) == (0, ["move quota=1:seconds: never above 30", "move:rate: never below 0.8"])
    assert [each.never_above for each in policies.load(Store.open(tmp_path)).floors] == [30.0, None]
    assert results("floor", "move:rate", "--remove")[1] == "move quota=1:seconds: never above 30\n"


def test_a_name_that_no_run_of_the_store_has_is_named_its_parameters_included(results, tmp_path):
    """A floor of `mode=batchd` holds for no series, and its user would not see that."""
    rows = pq.read_table(RECORDED)
    values_table.write(Store.open(tmp_path), values_table.of_today(rows))
    own = next(row for row in rows.to_pylist() if row["metric"] == "move-seconds")
    experiment, parameters = own["experiment"], json.loads(own["parameters"])
    name, value = next((n, v) for n, v in parameters.items() if " " not in str(v) and ":" not in str(v))
    unknown = "no judged series has this name"
    for text in (f"{experiment}:move-seconds", f"{experiment} {name}={value}:move-seconds", own["series"]):
        assert unknown not in results("floor", text, "--never-above", "1")[1]
    for text in (f"{experiment} {name}={value}x:move-seconds", f"{experiment}:move-second"):
        assert unknown in results("floor", text, "--never-above", "1")[1]


@pytest.mark.parametrize(
    "words",
    [
        ("mute", "move:seconds"),
        ("mute", "move:seconds", "--reason", "x", "--until", "soon"),
        ("mute", "move:seconds", "--reason", "x", "--until", "2020-01-01"),
        ("mute", "move:seconds", "--remove"),
        ("mute", "=:", "--reason", "x", "--until", "1d"),
        ("floor", "move:seconds"),
        ("floor", "move quota=1", "--never-above", "3"),
        ("floor", "kip73-two-node", "--never-above", "3"),
        ("floor", "move:seconds", "--never-above", "nan"),
        ("floor", "kip73-two-node:steady-mean", "--never-above", "1.1"),
        ("floor", "move:seconds", "--never-below", "inf"),
        ("mute", "move:seconds", "--reason", "x", "--until", "9999999999d"),
        ("floor", "move:seconds", "--remove"),
    ],
)
def test_what_cannot_be_meant_is_refused(results, words):
    assert results(*words)[0] == 64


def test_verify_names_policies_that_cannot_be_read(results, tmp_path):
    Store.open(tmp_path).files.put(policies.POLICIES, b'{"version": 1, "mutes": []')
    code, told = results("verify")
    assert (code, "1 damaged" in told) == (1, True)
    assert f"{policies.POLICIES}: not the file of mutes and floors: " in told


def test_a_mute_ends_at_a_date_a_time_or_after_an_age():
    assert parse_until("14d", NOW) == NOW + timedelta(days=14)
    assert parse_until("2026-12-24", NOW) == datetime(2026, 12, 24, tzinfo=UTC)
    assert parse_until("2026-12-24T12:00:00+02:00", NOW).isoformat() == "2026-12-24T10:00:00+00:00"
    for wrong in ("soon", "99999999d"):
        with pytest.raises(UsageError):
            parse_until(wrong, NOW)


def test_a_mute_is_kept_in_utc_whatever_offset_the_user_wrote(results, tmp_path):
    results("mute", "move:seconds", "--reason", "x", "--until", "2999-12-24T12:00:00+02:00")
    (mute,) = policies.load(Store.open(tmp_path)).mutes
    assert mute.until == "2999-12-24T10:00:00+00:00"


def test_a_floor_of_an_id_needs_no_metric(results, tmp_path):
    assert results("floor", "5f0c1b7a9e21", "--never-above", "3")[0] == 0
    assert policies.load(Store.open(tmp_path)).floors[0].series == "5f0c1b7a9e21"
