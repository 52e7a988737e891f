"""A running move without brokers, as actions use it."""

from contextlib import contextmanager
from types import SimpleNamespace

from testbed.experiments import mid_move_actions
from testbed.kafka.errors import UnreachableError
from testbed.reassignment.progress import Poll


class FakeMove:
    """Notes what is done to it, in order. `now` is the clock; the next `silent` requests get no answer.

    Three hosts have Kafka 4.2.1; the next upgrades and restarts raise `trouble`, one each, after the start of the
    host. A host does not answer when there is an error in `gone`.
    """

    def __init__(self, monkeypatch):
        self.now, self.done, self.details, self.lag, self.as_planned = 0.0, [], [], None, True
        self.missing, self.silent, self.trouble, self.gone = [], 0, [], None
        self.environment = self
        self.context = SimpleNamespace(progress=lambda _text: None)
        self.recorder = SimpleNamespace(latest=lambda _host, _metric: self.lag, event=self._event)
        prepared = SimpleNamespace(version="4.3.1", digest="d", features={"metadata.version": 25})
        self.admin = SimpleNamespace(features=lambda: {"metadata.version": 24})
        self.testbed = SimpleNamespace(
            state=SimpleNamespace(kafka=dict.fromkeys(("b1", "b2", "b3"), "4.2.1")),
            software=SimpleNamespace(kafka=lambda _to: prepared),
            node=lambda host: SimpleNamespace(kill=lambda: self.done.append(("killed", host)), pid=self._pid),
        )
        monkeypatch.setattr(mid_move_actions, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(mid_move_actions, "Faults", lambda _testbed: self)
        monkeypatch.setattr(mid_move_actions, "rolling_upgrade", self._upgrade)
        monkeypatch.setattr(mid_move_actions, "_LOOK_S", 0.001)

    def _event(self, kind, _name="", detail=None, host=None):
        self.done.append((kind, host or detail))
        self.details.append(detail)

    def _answer(self):
        if self.silent:
            self.silent -= 1
            raise UnreachableError("ask", "REQUEST_TIMED_OUT")

    def _pid(self):
        if self.gone:
            raise self.gone
        return 7

    def _upgrade(self, testbed, to, hosts, finalize, *, progress):
        self.done.append((to, *hosts, finalize))
        testbed.state.kafka.update(dict.fromkeys(hosts, to))
        if self.trouble:
            raise self.trouble.pop(0)

    @contextmanager
    def injected(self, fault):
        self.done.append((fault.kind, fault.host))
        if self.trouble:
            raise self.trouble.pop(0)
        yield 1
        self.done.append(("healed", fault.host))

    def change_rate(self, rate):
        self._answer()
        self.done.append(("rate", rate))

    def out_of_sync(self, _host):
        self._answer()
        return [self.missing.pop()] if self.missing else []

    def led_as_planned(self):
        return self.as_planned

    def at(self, second, action, in_flight=5):
        self.now = second
        action.on_poll(self, Poll(0, in_flight))
