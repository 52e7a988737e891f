"""A run on a testbed that stays up: one at a time."""

from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from testbed.cli.main import main
from testbed.errors import TestbedError
from testbed.experiments import experiment_run
from testbed.experiments.experiment import find_experiment, read_settings
from testbed.provision import state as states
from testbed.topology.find import find
from tests.provision.states import make


def test_a_second_run_on_one_testbed_is_refused_until_the_first_has_ended(monkeypatch, tmp_path):
    """The second one restarted Kafka, or filled the NICs to measure them: the first one failed, and blamed Kafka."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    done = []
    testbed = SimpleNamespace(topology=find("two-brokers"), state=make(), close=lambda: done.append("closed"))
    monkeypatch.setattr(experiment_run.Testbed, "attach", lambda _name: testbed)
    monkeypatch.setattr(experiment_run, "reconfigure", lambda *_words: done.append("configured"))
    monkeypatch.setattr(experiment_run, "restore_hosts", lambda *_words: done.append("restored"))
    experiment = find_experiment("kip73-two-node")
    request, settings = experiment_run.RunRequest(experiment.name, on="one"), read_settings(experiment, "ci", [])

    def begin(stack):
        return experiment_run._testbed(request, experiment, settings, "run-id", stack, print)

    with ExitStack() as first:
        assert begin(first) is testbed
        with ExitStack() as second, pytest.raises(TestbedError, match="a run uses `one` right now"):
            begin(second)
        assert done == ["configured", "closed"]
    with ExitStack() as third:
        assert begin(third) is testbed
    assert done == ["configured", "closed", "restored", "closed", "configured", "restored", "closed"]


def test_nics_are_not_measured_while_a_run_lasts(monkeypatch, tmp_path, capsys):
    """The measurement fills each NIC: the run's moves had a fraction of their rate, and the run failed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    measured = []
    testbed = SimpleNamespace(nics=lambda: measured.append("nics") or (), uplinks=lambda: ())
    monkeypatch.setattr(experiment_run.Testbed, "attach", lambda _name: testbed)
    with states.lock("one", for_run=True):
        assert main(["nics", "one", "--json"]) == 70
    assert "a run uses `one` right now" in capsys.readouterr().err
    assert measured == []
    assert main(["nics", "one", "--json"]) == 0
    assert measured == ["nics"]
