"""An unchanged Kafka on an unchanged machine has green nights, and a changed one does not: drawn from recorded runs."""

import json

import pyarrow.parquet as pq
import pytest

from results.contract.archive import import_runs
from results.contract.store import Store
from results.nights import render
from results.nights.scenarios import worst
from results.nights.values import FAILED
from results.verdicts import EXIT
from tests.nights.replayed import EXAMPLE, RECORDED, RELEASES, History, Nights, recorded

SLOWER = (22.5 / 12.1, 20.9 / 12.1, 25.7 / 12.1)
"""72 to 112 %: what three runs with a quarter of a CPU took, measured."""


def unthrottled(metric, factors):
    def change(row, number):
        fits = row["experiment"] == "s3-reassign" and row["metric"] == metric
        return {**row, "value": row["value"] * factors[number]} if fits else row

    return change


@pytest.mark.parametrize("each", [1, 3])
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_at_least_18_of_20_nights_are_green(release, each, seed):
    nights = Nights(release, seed)
    told = [worst(nights.night(each)) for _ in range(20)]
    assert sum(EXIT[verdict] == 0 for verdict in told) >= 18, told


@pytest.mark.parametrize("release", RELEASES)
def test_a_kafka_that_is_72_to_112_percent_slower_is_told_the_same_night(release):
    found = Nights(release, 3).night(3, unthrottled("move-seconds", SLOWER))
    line = next(line for each in found for line in each.lines if line.tonight is not None)
    assert (worst(found), line.about.metric, line.verdict) == ("REGRESSED", "move-seconds", "REGRESSED")
    assert line.tonight.change.chance <= 0.04


def test_the_machine_answers_when_a_canary_moved_with_it():
    slower, canary = unthrottled("move-seconds", SLOWER), unthrottled("canary.cpu", SLOWER)
    found = Nights("3.9.2", 3).night(3, lambda row, number: canary(slower(row, number), number))
    assert worst(found) == "ENV-CHANGED"


@pytest.mark.parametrize("release", RELEASES)
def test_a_line_that_only_a_new_kafka_logs_is_found_on_the_second_night(release):
    def change(row, number):
        kinds = [*json.loads(row["logged"]), "WARN ReplicaManager: A line."] if row["metric"] == FAILED else None
        return {**row, "logged": kinds and json.dumps(kinds)}

    nights = Nights(release, 3, begin=13)
    first, second, third = (nights.night(1, change) for _ in range(3))
    found = [sum("A line." in each.why for each in night) for night in (first, second, third)]
    assert found == [0, len(second), 0]
    assert all("A line." in "".join(render.lines(night)) for night in (first, second, third))


def test_the_shipped_history_does_not_blame_kafka_for_the_machine():
    """`unthrottled` became slower after two runs of 4.2.1; no canary saw it. `bootstrap` became faster with 4.2.1."""
    rows = sorted(pq.read_table(RECORDED).to_pylist(), key=lambda row: row["at"])
    found = {line.about.experiment: each.verdict for each in History().add(rows) for line in each.lines}
    assert found["s3-reassign"] == "ENV-CHANGED"
    assert "REGRESSED" not in found.values()


def test_a_noisy_metric_is_listed_with_what_it_would_miss():
    found = Nights("4.3.1", 1).night()
    listed = {line.about.metric: line for each in found for line in each.lines if line.verdict == "NOISY"}
    assert "produce-p99" in listed
    assert listed["produce-p99"].said.detectable > 0.25


def test_the_recorded_values_are_those_of_the_shipped_runs(tmp_path):
    """Some runs of each release; `python tests/nights/replayed.py` records all of them again."""
    store = Store.open(tmp_path)
    import_runs(store, EXAMPLE / "kafka-4.3.1.tar")
    some = store.runs()[::15]
    then = [row for row in pq.read_table(RECORDED).to_pylist() if row["run_id"] in some]
    assert _measures(then) == _measures(recorded(store, some))


def _measures(rows):
    """What criteria say of a run may change with them; what was measured does not."""
    return {(row["run_id"], row["metric"]): row["value"] for row in rows if row["metric"] != FAILED}
