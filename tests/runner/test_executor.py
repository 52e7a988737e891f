"""The real executor: what it keeps of the canaries beside each run, and what of a run's judgement."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from results.contract.canaries import canaries
from results.contract.schema import Sample
from results.contract.store import Store
from results.criteria import judge
from testbed.errors import KafkaStuck, SoftwareError, TestbedError
from testbed.paths import data_dir
from testbed.provision.containers import EngineGone
from testbed.runner import executor as module
from testbed.runner.campaign_run import run_campaign
from testbed.runner.executor import TestbedExecutor, measured
from testbed.runner.journal import RunBegun, RunDone, known
from testbed.runner.time_limit import STACKS, TimeLimitError
from testbed.runner.variant import UPGRADE, Variant
from testbed.wait import WaitTimeout
from tests.results.synthetic import synthetic_run
from tests.results.test_unfit import machine
from tests.runner.fakes import campaign


class Pool:
    def __init__(self, *_asked):
        self.dropped = []

    def ready(self, _wanted):
        return SimpleNamespace(topology=SimpleNamespace(hosts=()), engine=None, state=None)

    start = ready

    def drop(self, topology_digest):
        self.dropped.append(topology_digest)

    def close(self):
        pass


@pytest.fixture
def slots(tmp_path, monkeypatch):
    readings = iter([{"cpu": 1.0}, {"cpu": 3.0}, {"cpu": 3.0}])
    monkeypatch.setattr(module, "TestbedPool", Pool)
    monkeypatch.setattr(module, "look", lambda _testbed: {"nic": 1.0, **next(readings)})
    monkeypatch.setattr(module, "environment", lambda _testbed, _nic: {})
    monkeypatch.setattr(module, "measured", lambda *_asked: RunDone(0, "run-1", "pass", {}, (), "jars"))
    monkeypatch.setattr(Store, "manifest", lambda _store, run_id: run_id)
    monkeypatch.setattr(module, "why_not_whole", lambda _engine, _state: "")
    store = Store.open(tmp_path)
    return TestbedExecutor(campaign("A", store=str(tmp_path)), store, print), store


def test_a_run_has_what_was_read_before_it_from_the_first_and_what_was_read_after_it_as_soon_as_it_is(
    slots, monkeypatch
):
    made, store = slots
    [variant] = campaign("A").variants
    seen = []
    monkeypatch.setattr(module, "run_on", lambda *_asked, recorder: seen.append(canaries(store, "run-1")))
    made.canary(variant)
    made.run(variant, RunBegun(0, "run-1"))
    assert seen == [{"cpu": 1.0, "nic": 1.0}]
    made.canary(variant)
    assert canaries(store, "run-1") == {"cpu": 2.0, "nic": 1.0}


def test_a_run_that_could_not_be_made_leaves_nothing(slots, monkeypatch):
    def fail(*_asked, recorder):
        raise TestbedError("no disk")

    made, store = slots
    [variant] = campaign("A").variants
    monkeypatch.setattr(module, "run_on", fail)
    made.canary(variant)
    with pytest.raises(TestbedError, match="no disk"):
        made.run(variant, RunBegun(0, "run-1"))
    made.canary(variant)
    assert list(store.files.list("canaries")) == []


def test_a_store_that_does_not_take_them_ends_no_run(slots, monkeypatch, capsys):
    def refuse(*_asked):
        raise OSError(28, "No space left on device")

    made, store = slots
    [variant] = campaign("A").variants
    monkeypatch.setattr(module, "run_on", lambda *_asked, recorder: None)
    monkeypatch.setattr(type(store.files), "put", refuse)
    made.canary(variant)
    assert made.run(variant, RunBegun(0, "run-1")).verdict == "pass"
    made.canary(variant)
    assert capsys.readouterr().out.count("could not be stored: [Errno 28]") == 2


def test_a_full_disk_that_takes_no_evidence_hides_no_reason(slots, monkeypatch):
    """The campaign ended with the error of the evidence, and its journal lacked the run that was not made."""

    def fail(*_asked, recorder):
        raise TestbedError("run-1 is not committed")

    def full(*_asked, **_named):
        raise OSError(28, "No space left on device")

    made, _store = slots
    [variant] = campaign("A").variants
    monkeypatch.setattr(module, "run_on", fail)
    monkeypatch.setattr(pq, "write_table", full)
    made.canary(variant)
    with pytest.raises(TestbedError, match="run-1 is not committed"):
        made.run(variant, RunBegun(0, "run-1"))


def test_a_run_is_stopped_at_its_limit_and_leaves_evidence(slots, monkeypatch):
    made, store = slots
    asked = campaign("A")
    variant = replace(asked.variants[0], limit_s=0.2)
    monkeypatch.setattr(module, "run_on", lambda *_asked, recorder: time.sleep(30))
    made.canary(variant)
    with pytest.raises(TimeLimitError, match="run-1 was not done after 0.2 s"):
        made.run(variant, RunBegun(0, "run-1"))
    evidence = data_dir() / "campaigns" / asked.id / "evidence" / "run-1"
    assert {"samples.parquet", "events.parquet", STACKS} <= {path.name for path in evidence.iterdir()}
    assert list(store.files.list("canaries")) == []


@pytest.mark.parametrize(("until", "explained"), [(5, False), (30, True)])
def test_a_stopped_run_is_not_kafkas_where_the_machine_was_unfit_for_most_of_it(slots, monkeypatch, until, explained):
    def robbed(*_asked, recorder):
        recorder.add(machine(steal=0.5, brokers=None, seconds=(-2, until)))
        time.sleep(30)

    made, _store = slots
    variant = replace(campaign("A").variants[0], limit_s=0.2)
    monkeypatch.setattr(module, "run_on", robbed)
    made.canary(variant)
    with pytest.raises(TestbedError, match="run-1 was not done after 0.2 s") as caught:
        made.run(variant, RunBegun(0, "run-1"))
    assert isinstance(caught.value, KafkaStuck) is not explained
    assert ("this explains it: 50.0 % of the CPU was stolen" in str(caught.value)) is explained


@pytest.mark.parametrize("gone", [True, False])
def test_a_stopped_run_is_not_kafkas_where_the_engine_or_a_container_ended(slots, monkeypatch, gone):
    def look(_engine, _state):
        if gone:
            raise EngineGone("the engine stopped answering")
        return "the container of b1 ended"

    made, _store = slots
    variant = replace(campaign("A").variants[0], limit_s=0.2)
    monkeypatch.setattr(module, "run_on", lambda *_asked, recorder: time.sleep(30))
    monkeypatch.setattr(module, "why_not_whole", look)
    made.canary(variant)
    why = "the engine stopped answering" if gone else "the container of b1 ended"
    with pytest.raises(TestbedError, match=f"run-1 was not done after .*; this explains it: {why}") as caught:
        made.run(variant, RunBegun(0, "run-1"))
    assert not isinstance(caught.value, KafkaStuck)


LATE = WaitTimeout("every Kafka node to serve", 90.0, ["b1: fenced"])


@pytest.mark.parametrize(
    ("cause", "busy", "steal", "calm", "late", "starts", "kafkas"),
    [
        (LATE, 0.95, 0.0, True, 1, 2, None),
        (LATE, 0.5, 0.2, True, 1, 2, None),
        (LATE, 0.95, 0.0, True, 2, 2, True),
        (LATE, 0.95, 0.0, False, 1, 1, False),
        (LATE, 0.8, 0.04, True, 1, 1, True),
        (None, 0.95, 0.2, True, 1, 1, True),
    ],
    ids=["busy", "stolen", "late twice", "busy without Kafka", "fit", "Kafka has ended"],
)
def test_a_kafka_that_is_late_on_an_unfit_machine_is_started_once_more(
    slots, monkeypatch, cause, busy, steal, calm, late, starts, kafkas
):
    """The candidate had hung, whatever else the machine did."""
    begun = []

    def start(pool, wanted):
        begun.append(wanted)
        if len(begun) <= late:
            raise KafkaStuck("b1 does not serve") from cause
        return pool.ready(wanted)

    load = [Sample(0, "machine", "cpu.busy", busy), Sample(0, "machine", "cpu.steal", steal)]
    monkeypatch.setattr(Pool, "start", start)
    monkeypatch.setattr(module, "machine_probe", lambda: lambda: load)
    monkeypatch.setattr(module, "wait_calm", lambda *_asked: calm)
    monkeypatch.setattr(module, "run_on", lambda *_asked, recorder: None)
    made, _store = slots
    [variant] = campaign("A").variants
    made.canary(variant)
    if kafkas is None:
        assert made.run(variant, RunBegun(0, "run-1")).verdict == "pass"
    else:
        with pytest.raises(TestbedError, match="b1 does not serve") as caught:
            made.run(variant, RunBegun(0, "run-1"))
        assert isinstance(caught.value, KafkaStuck) is kafkas
        assert ("the machine was 95.0 % busy, and without Kafka" in str(caught.value)) is not kafkas
    assert len(begun) == starts


def test_a_run_whose_time_limit_ended_the_command_had_no_end(slots):
    made, _store = slots
    stacks = data_dir() / "campaigns" / campaign("A").id / "evidence" / "run-1" / STACKS
    stacks.parent.mkdir(parents=True)
    stacks.write_text("")  # as a kill leaves it
    assert made.committed(RunBegun(0, "run-1")) is None
    stacks.write_text("Thread 0x1\n")
    with pytest.raises(KafkaStuck, match=f"run-1 was not done at its time limit, .*; {stacks} has "):
        made.committed(RunBegun(0, "run-1"))


def test_a_criterion_is_kept_when_all_of_it_was_judged_and_none_failed():
    run = synthetic_run()
    judgement = judge(run.manifest, run.samples, run.events)
    [good] = [each for each in judgement.criteria if each.name == "records-intact"]
    named = [
        replace(good, name=name, verdict=verdict)
        for name, verdict in (
            ("kept", "pass"),
            ("open", "pass"),
            ("open", "inconclusive"),
            ("broken", "inconclusive"),
            ("broken", "fail"),
        )
    ]
    found = measured(0, run.manifest, replace(judgement, criteria=tuple(named)))
    assert (found.failed, found.kept) == (("broken",), ("kept",))


def test_a_run_that_only_what_explains_it_leaves_open_is_sound():
    run = synthetic_run()
    judgement = judge(run.manifest, run.samples, run.events)
    [good] = [each for each in judgement.criteria if each.name == "records-intact"]
    for name, sound in (("duration-formula", True), ("steady-mean", False)):
        criteria = (good, replace(good, name=name, verdict="inconclusive"))
        assert measured(0, run.manifest, replace(judgement, criteria=criteria)).sound is sound
    assert not measured(0, run.manifest, judgement).sound


def test_only_a_new_campaign_needs_its_kafkas_before_its_first_run(tmp_path):
    """`--resume` of a campaign whose runs were all made failed when the cache had been emptied."""
    upgrade = Variant("A", UPGRADE, settings=("to=4.4.0+0123456789ab",))
    asked = replace(campaign("A", store=str(tmp_path)), variants=(upgrade,))
    TestbedExecutor(asked, Store.open(tmp_path), print)
    with pytest.raises(SoftwareError, match=r"4\.4\.0\+0123456789ab is not in the cache"):
        run_campaign(asked, None, asked.command, None, print)
    assert known() == []
