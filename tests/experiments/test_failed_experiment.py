"""An experiment that ends early is a result: no exception of it reaches the user as a traceback."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from results.criteria.judgement import OWN_ERROR
from results.criteria.restraint import ENDING
from testbed.errors import KafkaStuck, SoftwareError, TestbedError, UsageError
from testbed.experiments import runner
from testbed.experiments.runner import in_one_line
from testbed.probes.recorder import Recorder
from testbed.provision.containers import EngineGone
from testbed.provision.liveness import NotWhole
from testbed.wait import WaitTimeout


class Ends:
    def __init__(self, error):
        self.error = error

    def run(self, _context):
        raise self.error


@pytest.fixture
def outcome(monkeypatch):
    monkeypatch.setattr(runner, "explained", lambda *_: nullcontext())
    monkeypatch.setattr(runner, "guarded", lambda *_: nullcontext())
    recorder, said = Recorder(), []
    context = SimpleNamespace(testbed=SimpleNamespace(engine=None, state=None), recorder=recorder, progress=said.append)

    def run(what):
        return runner._outcome(Ends(what) if isinstance(what, BaseException) else what, context)

    return run, recorder, said


def test_an_error_is_one_line_and_its_traceback_is_an_event(outcome):
    run, recorder, said = outcome
    _result, why = run(TestbedError("preload: nothing\ncame for 60 s"))
    assert why == "preload: nothing came for 60 s"
    assert said == ["the experiment ended early: preload: nothing came for 60 s"]
    (event,) = recorder.events()
    assert event.detail["why"] == why and "Traceback" in event.detail["trace"]


def test_what_a_run_ends_is_an_event_as_long_as_it_lasts(outcome):
    run, recorder, _said = outcome
    testbeds = []

    class Kills:
        def run(self, context):
            testbeds.append(context.testbed)
            context.testbed.ending("b2", "KILL")
            raise TestbedError("b2 does not come back")

    run(Kills())
    testbeds[0].ending("b1", "TERM")
    found = [(event.kind, event.name, event.host) for event in recorder.events()]
    assert found[0] == (ENDING, "SIGKILL", "b2")
    assert [kind for kind, _name, _host in found] == [ENDING, "note"]


def test_a_defect_of_an_experiment_names_its_type_and_place(outcome):
    run, _recorder, _said = outcome
    _result, why = run(TypeError("'>=' not supported"))
    assert why.startswith(f"{OWN_ERROR}TypeError: '>=' not supported (test_failed_experiment.py:")
    assert in_one_line(ValueError("x")) == "ValueError: x"


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (KeyError("Rate"), True),
        (OSError(28, "No space left on device"), True),
        (SoftwareError("Kafka 4.3.1 is not in the cache"), True),
        (EngineGone("the container engine stopped answering"), True),
        (WaitTimeout("b1 to serve", 60, ["b1"]), False),
        (KafkaStuck("Kafka on b1 does not run"), False),
    ],
)
def test_what_no_broker_raises_is_the_testbeds_own_error(outcome, error, own):
    run, _recorder, _said = outcome
    _result, why = run(error)
    assert why.startswith(OWN_ERROR) is own


@pytest.mark.parametrize("error", [UsageError("rate: must be above 0"), KeyboardInterrupt()])
def test_what_is_no_result_is_raised(outcome, error):
    run, _recorder, _said = outcome
    with pytest.raises(type(error)):
        run(error)


def test_containers_that_ended_are_raised(outcome):
    run, _recorder, _said = outcome
    error = NotWhole.__new__(NotWhole)
    with pytest.raises(NotWhole):
        run(error)


@pytest.mark.parametrize("error", [TestbedError("no host has the log"), ValueError("not a number")])
def test_a_metadata_log_that_cannot_be_read_loses_no_run(monkeypatch, error):
    def fails(*_run):
        raise error

    monkeypatch.setattr(runner, "read_changes", fails)
    said = []
    assert runner._changes(None, None, Recorder(), said.append) == ()
    assert said == [f"what other clients changed is not known: {in_one_line(error)}"]
