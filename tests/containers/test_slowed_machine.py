"""A machine that became slower is named as such by a night: Kafka is never blamed for it."""

import pytest

from results.contract.store import Store
from tests.containers.conftest import cli
from tests.containers.interference import SLOWED
from tests.nights.replayed import History

# A history of ten runs, then up to three on each slowed machine: forty minutes.
pytestmark = [pytest.mark.containers, pytest.mark.spark, pytest.mark.alone, pytest.mark.nightly]
NIGHT = ("nightly", "--suite", "brief", "--scenario", "unthrottled")
HISTORY_S, NIGHT_S = 1500, 900


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with ten runs of an unthrottled move, on the machine as it is."""
    folder = tmp_path_factory.mktemp("history") / "store"
    told = cli(*NIGHT, "--repeats", "10", "--store", str(folder), timeout_s=HISTORY_S)
    print(told.stderr)
    assert told.returncode in (0, 2), told.stdout
    return Store.open(folder)


@pytest.fixture(scope="module")
def well(store):
    """The runs of the history, one for each night."""
    return store.runs()


@pytest.mark.parametrize("kind", SLOWED)
def test_a_slowed_machine_is_named_and_kafka_is_not_blamed(store, well, tmp_path, kind):
    before = set(store.runs())
    with SLOWED[kind](tmp_path):
        told = cli(*NIGHT, "--store", str(store.location), timeout_s=NIGHT_S)
    print(told.stderr)
    history = History()
    for run_id in well:
        history.played(store, [run_id])
    tonight = sorted(set(store.runs()) - before)
    assert tonight, told.stderr
    [scenario] = history.played(store, tonight)
    verdicts = [store.manifest(run_id).verdict for run_id in tonight]
    print(kind, verdicts, scenario.verdict, scenario.why)
    # OK only where the slowed machine moved the data as before.
    wanted = ("ENV-CHANGED", "OK") if set(verdicts) == {"pass"} else ("ENV-CHANGED",)
    assert scenario.verdict in wanted, [(line.about.metric, line.verdict, line.why) for line in scenario.lines]
