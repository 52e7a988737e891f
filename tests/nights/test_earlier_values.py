"""Whether a run is like those before: what the store has of its scenario, in its environment."""

from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from results.contract.aliases import MEASURES
from results.contract.store import Store
from results.nights import values_table
from results.nights.earlier_values import earlier_values, in_doubt
from results.nights.values import VALUES
from tests.nights.replayed import RECORDED

CALM = [100.0, 101.0, 99.0, 102.0, 98.0, 100.5, 99.5, 101.5, 98.5, 100.2]


def test_the_newest_values_of_each_environment_before_tonight(tmp_path):
    store = Store.open(tmp_path)
    rows = pq.read_table(RECORDED).to_pylist()
    scenario = rows[0]["scenario"]
    mine = [row for row in rows if (row["scenario"], row["metric"]) == (scenario, "move-seconds")]
    [here] = {row["environment"] for row in mine if row["value"] is not None}
    own = sorted((row["at"], row["value"]) for row in mine)
    values_table.write(store, pa.Table.from_pylist(rows, schema=VALUES))
    last = own[-1][0]
    found = earlier_values(store, {scenario}, last)
    before = [value for _, value in own if value is not None]
    assert found[scenario, here, "move-seconds"] == before[:-1]
    assert {name for name, _, _ in found} == {scenario}
    moved = [
        {**row, "environment": "elsewhere", "at": row["at"] + timedelta(days=1), "run_id": f"{row['run_id']}-new"}
        for row in rows
        if row["at"] == last
    ]
    values_table.write(store, pa.Table.from_pylist(moved, schema=VALUES))
    found = earlier_values(store, {scenario}, last + timedelta(days=2))
    assert found[scenario, "elsewhere", "move-seconds"] == [own[-1][1]]
    assert found[scenario, here, "move-seconds"] == before  # another machine in the same store hides nothing
    assert earlier_values(store, (), last) == {}


def some(metric="move-seconds", count=3):
    rows = [row for row in pq.read_table(RECORDED).to_pylist() if row["metric"] == metric]
    scenario = rows[0]["scenario"]
    return scenario, [row for row in rows if row["scenario"] == scenario][:count]


def test_values_under_a_measures_earlier_name_are_of_the_measure(tmp_path):
    store = Store.open(tmp_path)
    before, today = next(iter(MEASURES.items()))
    scenario, rows = some()
    values_table.write(store, pa.Table.from_pylist([{**row, "metric": before} for row in rows], schema=VALUES))
    assert {name for _, _, name in earlier_values(store, {scenario}, rows[-1]["at"] + timedelta(days=1))} == {today}


def test_broken_brokers_and_runs_that_were_set_aside_are_in_no_history(tmp_path):
    store = Store.open(tmp_path)
    scenario, (first, *_) = some()
    rows = [
        {
            **first,
            "run_id": f"run{number}",
            "at": first["at"] + timedelta(minutes=number),
            "value": float(number),
            "noisy": False,
            "defects": "error-line" if number == 1 else None,
        }
        for number in range(4)
    ]
    values_table.write(store, pa.Table.from_pylist(rows, schema=VALUES))
    store.catalogue.write(aside={"run2": "damaged"})
    found = earlier_values(store, {scenario}, first["at"] + timedelta(days=1))
    assert found[scenario, first["environment"], "move-seconds"] == [0.0, 3.0]


def test_parts_that_are_merged_meanwhile_are_read_again(tmp_path, monkeypatch):
    store = Store.open(tmp_path)
    scenario, rows = some()
    for row in rows:
        values_table.write(store, pa.Table.from_pylist([row], schema=VALUES))
    listed, merged = values_table.whole, []

    def then_merged(store):
        found = listed(store)
        if not merged:
            merged.append(values_table.merge(store, most=1))
        return found

    monkeypatch.setattr(values_table, "whole", then_merged)
    found = earlier_values(store, {scenario}, rows[-1]["at"] + timedelta(days=1))
    assert sorted(each for values in found.values() for each in values) == sorted(row["value"] for row in rows)


@pytest.mark.parametrize(
    ("value", "earlier", "wanted"),
    [
        (100.0, CALM, False),
        (109.0, CALM, False),
        (111.0, CALM, True),
        (60.0, CALM, True),
        (150.0, CALM[:9], False),
        (150.0, [*CALM, 300.0], True),  # one outlier among eleven
        (150.0, [100.0] * 10, True),
        (1.0, [0.0] * 10, True),
        (0.0, [0.0] * 10, False),
    ],
)
def test_a_value_far_from_the_others_is_in_doubt(value, earlier, wanted):
    assert in_doubt(value, earlier) == wanted
