"""A machine that became slower is named as such by a night: Kafka is never blamed for it."""

import json
import shutil

import pytest

from tests.containers.conftest import cli
from tests.containers.interference import SLOWED

# A history of ten runs, then some runs on each slowed machine: half an hour.
pytestmark = [pytest.mark.containers, pytest.mark.spark, pytest.mark.alone, pytest.mark.nightly]
NIGHT = ("nightly", "--suite", "brief", "--case", "unthrottled", "--json")
HISTORY_S, NIGHT_S = 1500, 500


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """A store with ten runs of an unthrottled move, on the machine as it is."""
    store = tmp_path_factory.mktemp("history") / "store"
    told = cli(*NIGHT, "--repeats", "10", "--store", str(store), timeout_s=HISTORY_S)
    print(told.stderr)
    assert told.returncode in (0, 2), told.stdout
    return store


@pytest.mark.parametrize("kind", SLOWED)
def test_a_slowed_machine_is_named_and_kafka_is_not_blamed(history, tmp_path, kind):
    store = tmp_path / "store"
    shutil.copytree(history, store)
    with SLOWED[kind](tmp_path):
        told = cli(*NIGHT, "--store", str(store), timeout_s=NIGHT_S)
    print(told.stderr)
    document = json.loads(told.stdout)
    print(json.dumps(document, indent=1))
    [scenario] = document["scenarios"]
    assert (told.returncode, scenario["verdict"]) == (2, "ENV-CHANGED"), scenario["why"]
