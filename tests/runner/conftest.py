import contextlib

import pytest

from testbed.runner import campaign_run as module
from tests.runner.fakes import FakeExecutor


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """Journals of these tests' own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


class Doors:
    """What the doors were given, and what they find."""

    def __init__(self):
        self.value = lambda variant, number: 50.0 * (1 + 0.001 * (number % 3))
        self.fail = lambda variant, number: None
        self.verdict, self.criterion = "pass", "records-intact"
        self.logged = lambda variant: None
        self.ended = lambda variant: True
        self.seconds = {}
        self.executors, self.confirmed = [], []

    def slots(self, campaign, store, progress):
        executor = FakeExecutor(value=self.value, fail=self.fail, verdict=self.verdict)
        executor.logged, executor.ended, executor.seconds = self.logged, self.ended, self.seconds
        executor.criterion = self.criterion
        self.executors.append(executor)
        return contextlib.nullcontext(executor)

    def confirm(self, journal, store, progress):
        self.confirmed.append(len(journal.entries))


@pytest.fixture
def doors(monkeypatch):
    found = Doors()
    monkeypatch.setattr(module, "_require_kafkas", lambda _asked: None)  # a Kafka is fetched for it
    monkeypatch.setattr(module, "TestbedExecutor", found.slots)
    monkeypatch.setattr(module, "_confirm", found.confirm)
    limits = module.CampaignLimits
    monkeypatch.setattr(
        module,
        "CampaignLimits",
        lambda budget_s, enough, needless: limits(budget_s, enough, lambda: found.executors[-1].now, needless),
    )
    return found
