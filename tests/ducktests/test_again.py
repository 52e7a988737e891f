"""A case that only the machine made inconclusive may be run again; one that Kafka made so, or that fails, never."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from ducktests import scenario, services
from ducktests.framework import Failed, Inconclusive
from ducktests.kip73_test import Kip73Test
from results.contract.verdict import Finding
from results.criteria.judgement import Judgement, noisy
from testbed.errors import TestbedError
from testbed.runner.case import CaseOutcome


def criterion(name, verdict, why="seen"):
    return Finding(name, "b1", None, "e", 1.0, "u", "t", verdict, why, ())


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ([criterion("machine-load", "inconclusive"), criterion("duration", "inconclusive", "not judged: busy")], True),
        ([criterion("nic-measured", "inconclusive"), criterion("done", "pass")], True),
        ([criterion("machine-load", "inconclusive"), criterion("control", "inconclusive", "no samples")], False),
        ([criterion("machine-load", "inconclusive"), criterion("done", "fail")], False),
        ([criterion("control", "inconclusive")], False),
        ([criterion("machine-load", "pass"), criterion("done", "pass")], False),
    ],
)
def test_disturbed_is_what_nothing_but_the_machine_made_inconclusive(criteria, expected):
    assert noisy(Judgement(tuple(criteria), None)) is expected


@pytest.fixture
def attempts(monkeypatch, tmp_path):
    """Makes the case `stuck` end as told, one attempt after the other; gives what each was told of those before it."""
    told = []

    def given(*endings, again):
        left = list(endings)

        class Run:
            def __init__(self, case, _profile, _kafka, _folder, before):
                told.append(before)
                self.case, self.disturbed = case, False

            def end(self):
                ending = left.pop(0)
                self.disturbed = ending == "disturbed"
                verdict = "inconclusive" if self.disturbed else ending
                return CaseOutcome("stuck", "kip73-stuck", "two-brokers", verdict, f"run{len(told)}", "busy", 1.0)

        monkeypatch.setattr(scenario, "CaseRun", Run)
        monkeypatch.setattr(
            scenario, "KafkaService", lambda _c, _n: SimpleNamespace(options=SimpleNamespace(kafka=None, again=again))
        )
        monkeypatch.setattr(scenario, "results_folder", lambda _context: str(tmp_path))
        monkeypatch.setattr(Kip73Test, "_once", lambda _self, run, _kafka: run.end())
        test = object.__new__(Kip73Test)
        test.test_context = None
        test.check("stuck")

    return told, given


def test_it_is_run_again_until_the_machine_is_calm(attempts):
    told, given = attempts
    given("disturbed", "disturbed", "pass", again=2)
    assert told == [(), ("run1: busy",), ("run1: busy", "run2: busy")]


def test_as_often_as_is_asked_for_and_not_once_more(attempts):
    told, given = attempts
    with pytest.raises(Inconclusive, match="run2"):
        given("disturbed", "disturbed", "pass", again=1)
    assert len(told) == 2


@pytest.mark.parametrize(("ending", "error"), [("fail", Failed), ("inconclusive", Inconclusive)])
def test_what_kafka_made_so_is_never_run_again(attempts, ending, error):
    told, given = attempts
    with pytest.raises(error):
        given(ending, "pass", again=3)
    assert told == [()]


BROKEN = TestbedError("it broke")


@pytest.mark.parametrize(
    ("kept", "error", "done"),
    [
        (False, None, ["restore before"]),
        (True, None, ["restore before"]),
        (True, BROKEN, ["restore before"]),
        (False, BROKEN, ["down"]),
    ],
)
def test_after_a_run_that_changed_its_brokers_a_testbed_has_its_own_again_or_is_removed(monkeypatch, kept, error, done):
    """The next case of the topology runs on it, and so does a repetition of this one."""
    seen = []
    testbed = SimpleNamespace(topology="before", down=lambda: seen.append("down"))
    monkeypatch.setattr(services.Testbed, "attach", staticmethod(lambda _name: testbed))
    monkeypatch.setattr(services, "restore_hosts", lambda _on, topology, _progress: seen.append(f"restore {topology}"))
    monkeypatch.setattr(Kip73Test, "_store", lambda _self, _kafka: None)
    kafka = object.__new__(services.KafkaService)
    kafka.problem, kafka.kept, kafka.nodes = None, kept, [SimpleNamespace(testbed="one")]
    kafka._testbed = kafka._topology = None
    kafka.start = lambda _overlay: None

    def ran(on, _store, _progress):
        on.topology = "changed"
        if error is not None:
            raise error
        return "outcome"

    experiment = SimpleNamespace(fits=lambda _topology, _settings: None)
    run = SimpleNamespace(
        case=SimpleNamespace(name="out", experiment="scale-out", settings=()),
        resolved=SimpleNamespace(experiment=experiment, settings={}, overlay={}),
        recorded=nullcontext,
        run=ran,
    )
    test = object.__new__(Kip73Test)
    if error is None:
        assert test._once(run, kafka) == "outcome"
    else:
        with pytest.raises(TestbedError, match="it broke"):
            test._once(run, kafka)
    assert seen == done
