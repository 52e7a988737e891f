import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from results.contract.manifest import Manifest, ManifestError, new_run_id
from results.contract.schema import (
    CRITERIA,
    SAMPLES,
    Sample,
    TableError,
    conform,
    criteria_from_table,
    criteria_table,
    samples_table,
)
from results.contract.verdict import Finding, overall
from results.criteria import judge


def criterion(verdict="pass", observed=1.0, **changes):
    values = {"name": "c", "host": None, "direction": None, "expected": "e", "unit": "u", "tolerance": "t", "why": "w"}
    return Finding(**{**values, **changes}, observed=observed, verdict=verdict, series=("log.bytes",))


def test_manifest_survives_json(make_run):
    manifest = make_run().manifest
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert next(iter(json.loads(manifest.to_json()))) == "schema"


def test_a_manifest_from_before_logs_were_watched_reads(make_run):
    old = edited(make_run, lambda document: document["facts"].pop("logs"))
    assert Manifest.from_json(old).facts.logs is None


def test_a_manifest_from_before_there_was_a_model_reads_and_is_judged_as_before(make_run):
    def before(document):
        for name in ("expected", "model_seconds", "model_why", "inbound_bytes_per_s", "nic_bound", "wildcard"):
            del document["move"][name]
        del document["facts"]["live"]

    run = make_run()
    old = Manifest.from_json(edited(make_run, before))
    assert (old.move.expected, old.move.model_seconds, old.facts.live) == ((), None, None)
    judgement = judge(old, run.samples, run.events)
    assert judgement.verdict == "pass"
    names = {c.name for c in judgement.criteria}
    assert "steady-mean" in names
    assert not names & {
        "duration-model",
        "bottleneck-as-modelled",
        "load-rate-sustained",
        "live-records",
        "no-isr-shrink",
    }
    assert len([c for c in judgement.criteria if c.name == "steady-mean"]) == 2


def edited(make_run, edit):
    document = json.loads(make_run().manifest.to_json())
    edit(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.pop("machine"), "machine: missing"),
        (
            lambda d: d["move"].update(quota_bytes_per_s="ten"),
            "move.quota_bytes_per_s: expected a number, found str 'ten'",
        ),
        (lambda d: d["move"].update(quota_bytes_per_s=0), "move: quota_bytes_per_s is 0.0; it must be positive"),
        (lambda d: d["machine"].update(cores=True), "machine.cores: expected a whole number, found bool True"),
        (
            lambda d: d["move"]["flows"][1].update(kind="controll"),
            "move.flows[1].kind: found 'controll'; allowed: 'throttled'",
        ),
        (lambda d: d["move"]["flows"][0].update(leader="b9"), "names 'b9', not among brokers ['b1', 'b2']"),
        (lambda d: d["load"].update(cpu_buzy=1), "load.cpu_buzy: unknown field; known: cpu_busy_mean"),
        (lambda d: d.update(started="2026-11-21T18:15:00+01:00"), "is not in UTC; write it as 2026-11-21T18:15:00Z"),
        (lambda d: d.update(run_id="../x"), "run_id '../x' is not like 20261121T181500Z-kip73-two-node-ab12cd"),
        (lambda d: d.update(schema=4), "schema 4; this version reads schema 1 to 3"),
        (lambda d: d.update(nics={}), "nics: expected a list, found dict {}"),
        (
            lambda d: d["facts"]["logs"][1].update(findings=[{"level": "INFO"}]),
            "facts.logs[1].findings[0].level: found 'INFO'; allowed: 'WARN', 'ERROR', 'FATAL'",
        ),
    ],
)
def test_a_wrong_manifest_is_refused_by_field(make_run, edit, message):
    with pytest.raises(ManifestError, match="^runs/x.json: ") as caught:
        Manifest.from_json(edited(make_run, edit), "runs/x.json")
    assert message in str(caught.value)


def test_every_mistake_is_named(make_run):
    def edit(document):
        document["machine"]["cores"] = "two"
        document["load"] = None
        document["surplus"] = 1

    with pytest.raises(ManifestError) as caught:
        Manifest.from_json(edited(make_run, edit))
    for field in ("machine.cores", "load", "surplus"):
        assert f"{field}: " in str(caught.value)


@pytest.mark.parametrize("text", ["", '{"schema": 1', "[]", '{"schema": 1, "x": NaN}', "\x00"])
def test_what_is_no_document_is_refused(text):
    with pytest.raises(ManifestError, match="m: "):
        Manifest.from_json(text, "m")


def test_a_number_that_json_lacks_is_not_written(make_run):
    from dataclasses import replace

    with pytest.raises(ValueError, match="JSON"):
        replace(make_run().manifest, parameters={"rate": float("nan")}).to_json()


def test_run_ids_sort_by_time_and_are_in_utc():
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    ids = [new_run_id("kip73-two-node", noon + timedelta(seconds=s), "ab12cd") for s in (0, 1, 3600)]
    assert ids == sorted(ids)
    assert ids[0] == "20261121T120000Z-kip73-two-node-ab12cd"
    assert new_run_id("x", noon.astimezone(timezone(timedelta(hours=5))), "ab12cd") == "20261121T120000Z-x-ab12cd"
    assert new_run_id("x") != new_run_id("x")


@pytest.mark.parametrize(
    ("experiment", "now", "token", "message"),
    [
        ("Kip 73", datetime(2026, 1, 1, tzinfo=UTC), "ab12cd", "must be words of"),
        ("x", datetime(2026, 1, 1, tzinfo=UTC), "../../", "token six of"),
        ("x", datetime(2026, 1, 1), "ab12cd", "no time zone"),
    ],
)
def test_a_run_id_that_could_not_be_a_file_name_is_refused(experiment, now, token, message):
    with pytest.raises(ValueError, match=message):
        new_run_id(experiment, now, token)


def test_criteria_survive_their_table():
    rows = [
        criterion(),
        criterion("fail", "20 MB/s at +3.2 s", host="b1", direction="receive"),
        criterion("inconclusive", None),
    ]
    assert criteria_from_table(criteria_table(rows)) == rows


def test_nothing_observed_cannot_pass():
    with pytest.raises(ValueError, match="nothing was observed, so it cannot pass"):
        criterion("pass", None)
    with pytest.raises(ValueError, match="verdict 'ok' is none of pass, fail, inconclusive"):
        criterion("ok")


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((), "inconclusive"),
        (("pass",), "pass"),
        (("pass", "inconclusive"), "inconclusive"),
        (("inconclusive", "fail", "pass"), "fail"),
    ],
)
def test_the_verdict_of_a_run(verdicts, expected):
    assert overall([criterion(v) for v in verdicts]) == expected


def test_tables_are_conformed_or_refused():
    table = samples_table([Sample(2, "b1", "m", 1), Sample(1, "b1", "m", 2, "t", 3)])
    assert table.schema == SAMPLES
    assert table["value"].to_pylist() == [2.0, 1.0]
    assert conform(table.to_pandas(), SAMPLES, "samples").equals(table)
    with pytest.raises(TableError, match=r"samples: missing columns \['host'\], unknown columns \[\]"):
        conform(table.drop_columns(["host"]), SAMPLES, "samples")
    with pytest.raises(TableError, match=r"samples.value: string is not double"):
        conform(table.set_column(6, "value", [["a", "b"]]), SAMPLES, "samples")
    with pytest.raises(TableError, match=r"samples.host: 1 nulls"):
        conform(table.set_column(1, "host", [["a", None]]), SAMPLES, "samples")
    assert criteria_table([]).schema == CRITERIA
