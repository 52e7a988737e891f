"""A search on brokers that are broken on purpose: what it judges, and what it writes."""

import json

import pytest

from results.contract.store import Store
from testbed.incidents.read import load
from testbed.search.database import SearchSettings
from testbed.search.discovery import Discovery, write
from testbed.search.draft import Draft, DrawnStep, DrawnTopic
from testbed.search.replayer import Replayer
from tests.containers.conftest import cli, left_of

pytestmark = pytest.mark.containers
DRAFT = Draft(
    "three-brokers",
    {"orders": DrawnTopic(2, ("b1", "b2"), 16_000, 1), "clicks": DrawnTopic(2, ("b2", "b3"), 0, 2)},
    200,
    (
        DrawnStep("move", {"topics": ["orders"], "hosts": ["b3", "b1"], "throttle": "500kB/s"}, at_s=0.5),
        DrawnStep("nic_rate", {"host": "b2", "rate": "200mbit"}, at_s=1.0, lasts_s=0.5),
        # Not at a fixed time: on a busy machine the move begins late.
        DrawnStep("cancel", share=5),
    ),
    7.0,
)


@pytest.mark.nightly
def test_an_invariant_fails_on_broken_brokers_and_the_incident_is_written(tmp_path):
    settings = SearchSettings("three-brokers", 1, ("cancel-keeps-adding",))
    store = Store.open(str(tmp_path / "store"))
    with Replayer(settings, store, print) as replayer:
        outcome = replayer.play(DRAFT, False)
    assert outcome.failed.keys() == {"moves-ended"}, outcome
    assert {"records-intact", "metadata-replayed", "logs-removed", "throttle-removed"} <= {*outcome.kept}, outcome
    assert ("cancel", "copying") in outcome.pairs
    assert store.manifest(outcome.run_id).defects[0].acted
    found = Discovery("moves-ended", outcome.failed["moves-ended"], DRAFT, 1, 3, 0, 1, 1, False, 0.0, 0.0)
    file = load(write(found, settings, tmp_path, 1, 3))
    assert (file.broken.defects, file.fixed.defects) == (("cancel-keeps-adding",), ())


@pytest.mark.nightly
def test_a_search_finds_a_defect_shrinks_it_and_its_file_replays_in_both_variants(tmp_path):
    folder = tmp_path / "search"
    words = ["--defect", "log-not-deleted", "--findings", "1", "--budget", "30min", "--out", str(folder), "--json"]
    told = cli("search", *words, timeout_s=2400)
    print(told.stderr)
    assert told.returncode == 1, told.stderr
    (found,) = json.loads(told.stdout)["found"]
    assert found["invariant"] == "logs-removed"
    assert len(found["draft"]["steps"]) <= 3
    assert found["found"] == 3
    for variant, failed in (("broken", {"logs-removed"}), ("fixed", set())):
        replayed = json.loads(cli("replay", found["file"], "--variant", variant, "--json").stdout)
        judged = {each["name"] for each in replayed["criteria"] if each["verdict"] == "fail"}
        assert judged == failed, replayed["criteria"]
    assert left_of("search-") == []
