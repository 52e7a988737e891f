import json
import threading

import pytest

from results.contract.schema import Sample
from testbed.errors import TestbedError
from testbed.probes import recorder as module
from testbed.probes.recorder import Recorder, stop_all
from testbed.wait import WaitTimeout, wait_until


class FakeProcess:
    def __init__(self, lines):
        self._lines = lines
        self.stopped = threading.Event()

    def lines(self):
        yield from self._lines
        self.stopped.wait(5)

    def stop(self):
        self.stopped.set()


class FakeHost:
    name = "b1"

    def __init__(self, *lines):
        self.process = FakeProcess(lines)
        self.spawned = []

    def spawn(self, command):
        self.spawned.append(command)
        return self.process


def watch(recorder, host):
    recorder.watch_host(host, topics=["t"], devices=["data0"], log_dir="/x", jmx_port=1)


def test_what_the_agent_prints_becomes_samples():
    recorder = Recorder()
    watch(recorder, FakeHost(json.dumps({"t": 5, "v": [["log.bytes", "t", 3, None, 17]]})))
    wait_until(lambda: bool(recorder.samples()), 2, 0.01, "a sample")
    recorder.stop()
    assert recorder.samples() == [Sample(5, "b1", "log.bytes", 17.0, "t", 3)]
    assert recorder.latest("b1", "log.bytes", "t", 3) == 17.0


def test_an_agent_that_dies_is_told_and_a_stopped_one_is_not():
    dies = Recorder()
    host = FakeHost()
    host.process.stopped.set()
    watch(dies, host)
    wait_until(lambda: any(e.name == "probe ended" for e in dies.events()), 2, 0.01, "the note")
    quiet = Recorder()
    watch(quiet, FakeHost())
    quiet.stop()
    assert quiet.events() == []


def test_a_line_that_is_no_json_is_told():
    recorder = Recorder()
    watch(recorder, FakeHost("Traceback …"))
    wait_until(lambda: any(e.name == "probe failed" for e in recorder.events()), 2, 0.01, "the note")
    recorder.stop()


def test_waiting_for_a_silent_host_names_it():
    recorder = Recorder()
    watch(recorder, FakeHost())
    with pytest.raises(WaitTimeout, match="b1"):
        recorder.wait_for_all(timeout_s=0.2)
    recorder.stop()


def test_a_sample_that_fails_is_recorded_once_names_its_reason_and_the_next_one_counts():
    recorder = Recorder()
    failed = json.dumps({"t": 1, "error": "no file /x"})
    host = FakeHost(failed, failed)
    watch(recorder, host)
    with pytest.raises(WaitTimeout, match=r"b1 \(no file /x\)"):
        recorder.wait_for_all(timeout_s=0.2)
    recorder.stop()
    (event,) = recorder.events()
    assert (event.name, event.detail) == ("probe failed", {"error": "no file /x"})


def test_a_failed_look_is_an_event_and_the_next_one_counts():
    recorder, looks = Recorder(), []

    def look():
        looks.append(1)
        if len(looks) == 1:
            raise TestbedError("no answer")
        return [Sample(1, "driver", "m", 1.0)]

    recorder.poll("lag", 0.01, look)
    wait_until(lambda: bool(recorder.samples()), 2, 0.01, "a sample")
    recorder.stop()
    (event,) = [e for e in recorder.events() if e.name == "lag failed"]
    assert event.detail == {"error": "no answer"}


def test_a_call_that_outlasts_its_stop_adds_nothing(monkeypatch):
    monkeypatch.setattr(module, "STOP_S", 0.01)
    recorder, begun, goes_on = Recorder(), threading.Event(), threading.Event()

    def look():
        begun.set()
        goes_on.wait(5)
        return [Sample(1, "driver", "m", 1.0)]

    poller = recorder.poll("quota of b1", 0.01, look)
    assert begun.wait(5)
    poller.stop()
    goes_on.set()
    poller._thread.join(5)
    assert recorder.samples() == []
    recorder.stop()


def test_a_call_that_waits_for_a_broker_holds_up_no_other_pollers_end():
    """Pollers of ten brokers that did not answer ended one after the other, each after another call of its own."""
    recorder, begun, together = Recorder(), threading.Event(), []
    calm = recorder.poll("quota of b2", 60.0, list)

    def waits():
        begun.set()
        together.append(calm._stopping.wait(5))
        return []

    slow = recorder.poll("quota of b1", 60.0, waits)
    assert begun.wait(5)
    stop_all([slow, calm])
    assert together == [True]


def test_a_value_that_is_no_number_is_a_failure_of_the_probe():
    recorder = Recorder()
    watch(recorder, FakeHost(json.dumps({"t": 5, "v": [["broker.bytes_in", None, None, None, None]]})))
    wait_until(lambda: any(e.name == "probe ended" for e in recorder.events()), 2, 0.01, "the note")
    recorder.stop()
    assert recorder.events()[0].name == "probe failed"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_of_a_poll_is_an_event_of_the_run():
    recorder = Recorder()
    recorder.poll("lag", 0.01, lambda: {}["b1"])
    wait_until(lambda: bool(recorder.events()), 2, 0.01, "the note")
    recorder.stop()
    assert [(e.name, e.detail) for e in recorder.events()] == [("lag ended", {"error": "KeyError: 'b1'"})]


def test_a_step_ends_also_when_it_fails():
    recorder = Recorder()
    with pytest.raises(ValueError), recorder.step("move"):
        raise ValueError
    assert [e.detail["phase"] for e in recorder.events()] == ["begin", "end"]
