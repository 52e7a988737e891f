"""A search with a replayer that knows what fails: it finds, confirms, shrinks, writes, and goes on after a kill."""

import json
import random
from dataclasses import replace
from functools import cache

import pytest

from testbed.errors import TestbedError, UsageError
from testbed.incidents.read import load
from testbed.search.coverage import Coverage, aims, pace
from testbed.search.database import Database, Outcome, SearchSettings
from testbed.search.draft import DrawnStep, document
from testbed.search.replayer import incident_of
from testbed.search.search import Search, SearchLimits, candidate
from testbed.search.space import KILOBYTES, PARTITIONS, Space, draw_fault
from testbed.topology.find import find

SPACE = Space("three-brokers", find("three-brokers"))
FAULTS = SPACE.faults()
HELD, NO_TESTBED = Outcome(20.0, kept=("moves-ended",)), Outcome(20.0, void="no testbed")


class Planted:
    """A player in whose brokers a move and a later cancellation break an invariant; it counts its plays."""

    def __init__(self, *, often=1.0, dies_at=None, alter=lambda found, _fresh, _plays: found):
        self.plays, self.often, self.dies_at, self.alter = 0, often, dies_at, alter
        self._rng = random.Random(5)

    def play(self, draft, fresh):
        self.plays += 1
        if self.plays == self.dies_at:
            raise KeyboardInterrupt
        return self.alter(self._outcome(draft), fresh, self.plays)

    def _outcome(self, draft):
        actions = [step.action for step in draft.steps]
        hits = {"move", "cancel"} <= set(actions) and self._rng.random() < self.often
        pairs = tuple((step.kind, "copying") for step in draft.steps)
        if hits:
            return Outcome(20.0, {"moves-ended": "orders-0 has the replicas [1, 2, 3]"}, pairs=pairs)
        return Outcome(20.0, unknown={"throttle-bound": "busy"}, kept=("moves-ended",), pairs=pairs)


def database(folder, **more):
    return Database.new(folder, SearchSettings("three-brokers", 3, ("cancel-keeps-adding",), **more))


def search(found, player, **limits):
    clock = {"s": 0.0}

    def play(draft, fresh):
        clock["s"] += 20.0
        return player.play(draft, fresh)

    return Search(SPACE, found, play, lambda: clock["s"], 7200.0, SearchLimits(**limits), lambda _text: None)


def test_it_finds_shrinks_confirms_and_writes_a_file_that_replays(tmp_path):
    result = search(database(tmp_path / "s"), Planted(), findings=1).run()
    (found,) = result.found
    assert [step.action for step in found.draft.steps] in (["move", "cancel"], ["cancel", "move"])
    assert (found.found, found.of, found.minimal) == (3, 3, True)
    assert found.interval[0] == pytest.approx(0.292, abs=0.001)
    assert result.exit_code == 1
    file = load(found.file)
    assert file.broken.expected_failures == ("moves-ended",)
    assert file.broken.defects == ("cancel-keeps-adding",)
    assert file.fixed.defects == ()
    assert "3 of 3 replays" in file.broken.summary


@pytest.mark.parametrize("defects", [(), ("cancel-keeps-adding",)])
def test_both_variants_of_a_found_file_have_the_release_of_the_search(tmp_path, defects):
    settings = SearchSettings("three-brokers", 3, defects, "4.2.1")
    (found,) = search(Database.new(tmp_path / "s", settings), Planted(), findings=1).run().found
    file = load(found.file)
    assert {host.kafka_version for each in (file.broken, file.fixed) for host in each.topology.brokers} == {"4.2.1"}


def test_what_fails_sometimes_is_found_with_its_probability(tmp_path):
    result = search(database(tmp_path / "s"), Planted(often=0.6), findings=1).run()
    (found,) = result.found
    assert found.found == 3 <= found.of
    assert f"3 of {found.of}" in found.probability()


def test_what_does_not_come_again_on_a_new_testbed_is_no_finding(tmp_path):
    result = search(
        database(tmp_path / "s"), Planted(alter=lambda found, fresh, _plays: HELD if fresh else found), tries=12
    ).run()
    assert not result.found
    assert result.unconfirmed
    assert result.exit_code == 0


def test_brokers_that_hold_every_invariant_give_no_finding(tmp_path):
    result = search(database(tmp_path / "s"), Planted(often=0.0), tries=12).run()
    assert (result.found, result.unconfirmed, result.exit_code) == ([], [], 0)
    assert result.unknown == {"throttle-bound": 12}
    assert result.kept == {"moves-ended": 12}


def test_a_killed_search_goes_on_and_repeats_no_play(tmp_path):
    whole = Planted()
    expected = search(database(tmp_path / "whole"), whole, findings=1).run()
    killed = Planted(dies_at=6)
    with pytest.raises(KeyboardInterrupt):
        search(database(tmp_path / "s"), killed, findings=1).run()
    with (tmp_path / "s" / "tries.jsonl").open("a") as stream:
        stream.write('{"draft": {"topology"')  # the kill came in the middle of a line
    rest = Planted()
    again = search(Database.opened(tmp_path / "s"), rest, findings=1).run()
    assert killed.plays - 1 + rest.plays == whole.plays
    assert [each.draft for each in again.found] == [each.draft for each in expected.found]
    (one,), (other,) = again.found, expected.found
    assert (one.found_s, one.shrunk_s) == (other.found_s, other.shrunk_s) > (0.0, 0.0)


def test_a_search_of_void_tries_alone_gives_up(tmp_path):
    with pytest.raises(TestbedError, match="the machine was busy. Remove the cause, then continue with .*/s`$"):
        search(database(tmp_path / "s"), Planted(alter=lambda *_: Outcome(20.0, void="the machine was busy"))).run()


def test_a_folder_has_one_search_and_a_damaged_one_is_refused(tmp_path):
    database(tmp_path / "s")
    with pytest.raises(UsageError, match="--resume"):
        database(tmp_path / "s")
    with pytest.raises(UsageError, match="no search"):
        Database.opened(tmp_path / "other")
    (tmp_path / "s" / "search.json").write_text(json.dumps({"topology": 1}))
    with pytest.raises(UsageError, match="topology"):
        Database.opened(tmp_path / "s")


def test_the_same_seed_draws_the_same_and_every_draft_is_an_incident():
    for number in range(30):
        one, two = (candidate(SPACE, FAULTS, 9, number, Coverage()) for _ in range(2))
        assert one == two
        assert incident_of(one, 3).entries[-1].name == "calm"
    drawn = {step.kind for number in range(60) for step in candidate(SPACE, FAULTS, 9, number, Coverage()).steps}
    assert {"move", "cancel", "change_throttle", "broker-kill", "nic-rate"} <= drawn


@cache
def drawn(seeds=6, tries=36):
    """What searches of half an hour draw, at 50 s a try."""
    found = []
    for seed in range(seeds):
        coverage = Coverage()
        for number in range(tries):
            draft = candidate(SPACE, FAULTS, seed, number, coverage)
            coverage.aim(draft)
            coverage.add(aims(draft))
            found.append((seed, draft, next(step for step in draft.steps if step.action == "move")))
    return found


RESTARTS = {"restart", "broker-kill", "broker-term", "broker-restart", "clock-skew"}


def restarted(draft, hosts):
    return any(step.kind in RESTARTS and step.parameters["host"] in hosts for step in draft.steps)


TRIGGERS = {
    "a long throttled copy": lambda draft, move: (
        pace(draft) == "long" and {*move.parameters["hosts"]} - {*draft.topics["orders"].hosts}
    ),
    "a long throttled copy that nothing interrupts": lambda draft, move: (
        pace(draft) == "long"
        and {*move.parameters["hosts"]} - {*draft.topics["orders"].hosts}
        and all(move.at_s + 3 < step.at_s for step in draft.steps if step is not move)
    ),
    "its cancellation": lambda draft, _move: (
        pace(draft) == "long" and any(step.action == "cancel" for step in draft.steps)
    ),
    "a long move after a broker restarted": lambda draft, move: (
        pace(draft) == "long"
        and move.at_s > 8
        and any(step.kind in RESTARTS and step.at_s == 0 for step in draft.steps)
    ),
    "the only controller restarts in a long move": lambda draft, _move: (
        pace(draft) == "long" and restarted(draft, {"b1"})
    ),
    "a leader under load restarts": lambda draft, _move: (
        draft.load_kb_per_s and restarted(draft, draft.topics["clicks"].hosts[:1])
    ),
    "a replica restarts that min.insync.replicas needs": lambda draft, _move: (
        draft.load_kb_per_s
        and draft.topics["clicks"].least_in_sync == len(draft.topics["clicks"].hosts) == 2
        and restarted(draft, draft.topics["clicks"].hosts)
    ),
    "more replicas": lambda draft, move: len(move.parameters["hosts"]) > replicas(draft, move),
    "fewer replicas": lambda draft, move: len(move.parameters["hosts"]) < replicas(draft, move),
}


def replicas(draft, move):
    return len(draft.topics[move.parameters["topics"][0]].hosts)


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_half_an_hour_draws_what_a_defect_needs_in_most_searches(trigger):
    assert len({seed for seed, draft, move in drawn() if TRIGGERS[trigger](draft, move)}) >= 5


def test_what_is_drawn_can_happen():
    for _seed, draft, _move in drawn():
        for step in draft.steps:
            if step.action == "move":
                least = max(draft.topics[name].least_in_sync for name in step.parameters["topics"])
                assert least <= len(step.parameters["hosts"]) <= 3  # fewer replicas would stop the producers
            assert step.at_s <= draft.calm_s - 4.0


def test_a_search_draws_the_same_where_the_machine_cannot_have_a_fault_any_more(monkeypatch):
    recorded = tuple(FAULTS)
    monkeypatch.setattr(FAULTS["nic-rate"], "unavailable", lambda *_: "the kernel is another one")
    assert "nic-rate" not in Space("three-brokers", SPACE.topology).faults()
    faults = Space("three-brokers", SPACE.topology, recorded).faults()
    assert tuple(faults) == recorded
    for number in range(12):
        assert candidate(SPACE, faults, 9, number, Coverage()) == candidate(SPACE, FAULTS, 9, number, Coverage())
    assert Space("three-brokers", SPACE.topology, ("broker-kill", "of-a-later-version")).faults().keys() == {
        "broker-kill"
    }


def test_pairs_that_were_not_seen_are_preferred():
    everything = [SPACE.draw(random.Random(f"1/2/{place}"), FAULTS) for place in range(8)]
    coverage = Coverage()
    first = candidate(SPACE, FAULTS, 1, 2, coverage)
    assert coverage.new(first) == max(map(coverage.new, everything))
    assert coverage.new(first) >= coverage.new(everything[0])


def test_faults_are_drawn_by_what_each_declares():
    rng = random.Random(1)
    two_racks = find("two-racks-narrow-uplink")
    kinds = Space("two-racks-narrow-uplink", two_racks).faults()
    assert {"uplink-rate", "uplink-cut"} <= kinds.keys()
    assert "objectstore-full" not in kinds
    assert "uplink-cut" not in SPACE.faults()
    for name, kind in kinds.items():
        assert draw_fault(kind, two_racks, rng) is not None, name


@pytest.mark.parametrize(
    ("action", "parameters", "throttled"),
    [("move", {}, False), ("move", {"throttle": "2000kB/s"}, True), ("set_throttle", {"rate": "1MB/s"}, True)],
)
def test_a_bound_is_expected_where_a_throttle_is_set(action, parameters, throttled):
    """Otherwise the fixed variant of a shrunk incident stays inconclusive."""
    draft = SPACE.draw(random.Random(2), {}).with_steps([DrawnStep(action, parameters)])
    expected = [key for each in document(draft, 3)["timeline"][-1]["expect"] for key in each]
    assert ("throttle_bound" in expected) is throttled
    assert expected[0] == "records_intact"


def test_the_throttle_is_removed_once_more_when_all_brokers_serve():
    """A broker that restarts at the calm is not there at the first removal, and would keep its rate."""
    (calm,) = [each for each in document(SPACE.draw(random.Random(2), {}), 3)["timeline"] if each["name"] == "calm"]
    assert [next(iter(each)) for each in calm["do"]] == ["heal", "remove_throttle", "converge", "remove_throttle"]


def test_a_failure_that_does_not_come_again_hides_no_other_one(tmp_path):
    def flaky(found, fresh, _plays):
        first = {} if fresh else {"isr-explained": "once"}
        return replace(found, failed={**first, **found.failed}) if found.failed else found

    result = search(database(tmp_path / "s"), Planted(alter=flaky), findings=1).run()
    assert [each.invariant for each in result.found] == ["moves-ended"]
    assert len(result.unconfirmed) == 1


def test_ranges_bound_what_is_drawn():
    topics = [topic for _seed, draft, _move in drawn() for topic in draft.topics.values()]
    assert {topic.partitions for topic in topics} == {*PARTITIONS}
    assert {topic.kilobytes for topic in topics} == {0, *KILOBYTES}
    assert {len(draft.steps) for _seed, draft, _move in drawn()} == {1, 2, 3, 4}


def test_a_replay_that_could_not_be_judged_counts_neither_way(tmp_path):
    disturbed = Planted(alter=lambda found, fresh, plays: NO_TESTBED if fresh and plays % 2 else found)
    (found,) = search(database(tmp_path / "s"), disturbed, findings=1).run().found
    assert (found.found, found.of) == (3, 3)


def test_a_failure_whose_replays_cannot_be_judged_is_said_to_be_open(tmp_path):
    lost = Planted(alter=lambda found, fresh, _plays: NO_TESTBED if fresh else found)
    result = search(database(tmp_path / "s"), lost, tries=12).run()
    assert not result.found
    assert all("could not be judged" in each for each in result.unconfirmed)
    assert result.unconfirmed
