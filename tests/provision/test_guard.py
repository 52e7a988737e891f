"""What works on a testbed ends with it."""

import signal
import threading
import time

import pytest

from testbed.errors import TestbedError
from testbed.provision import liveness
from testbed.provision.containers import EngineGone
from testbed.provision.liveness import NotWhole, guarded
from tests.provision.test_ended import ALL, FakeEngine, state


class Engines:
    """What the engine tells from one look to the next; the last for ever."""

    def __init__(self, *told):
        self.told = list(told)

    def __call__(self):
        now = self.told.pop(0) if len(self.told) > 1 else self.told[0]
        if isinstance(now, Exception):
            raise now
        now.close = lambda: None
        return now


WHOLE = FakeEngine((), ["", "b1", "b2"])


def test_a_block_that_waits_is_left_when_the_containers_have_ended(monkeypatch):
    engines = Engines(WHOLE, EngineGone("no answer"), TestbedError("not yet"), FakeEngine(ALL))
    monkeypatch.setattr(liveness, "Engine", engines)
    put_back, begun = [], time.monotonic()
    with pytest.raises(NotWhole, match="testbed one is not whole: all its containers ended by"):  # noqa: SIM117
        with guarded(state, look_s=0.02):
            try:
                try:
                    time.sleep(30)
                except TestbedError:
                    time.sleep(30)  # an error that could be waited out
            finally:
                put_back.append("quota")
    assert time.monotonic() - begun < 5
    assert put_back == ["quota"]


def test_a_block_whose_testbed_runs_is_left_alone_and_the_signal_is_as_before(monkeypatch):
    monkeypatch.setattr(liveness, "Engine", Engines(WHOLE))
    before = signal.getsignal(signal.SIGUSR2)
    with guarded(state, look_s=0.01):
        time.sleep(0.1)
    assert signal.getsignal(signal.SIGUSR2) is before
    assert [thread.name for thread in threading.enumerate() if thread.name == "guard"] == []


def test_on_another_thread_nothing_is_interrupted(monkeypatch):
    monkeypatch.setattr(liveness, "Engine", Engines(FakeEngine(ALL)))
    done = []

    def work():
        with guarded(state, look_s=0.01):
            time.sleep(0.1)
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
