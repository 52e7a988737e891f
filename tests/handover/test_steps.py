from dataclasses import replace

import pytest

from results.contract.handover import STEPS
from testbed.handover.log_marks import marks
from testbed.handover.steps import HandoverPartition, ProbeAnswers, handover, handovers, longest_gap_s
from testbed.kafka.types import TopicPartition
from testbed.probes.log_entries import entries
from testbed.reassignment.metadata_log import Registration
from tests.handover.golden import ARTICLE_SOURCE, ARTICLE_TARGET, ASKED_US, SOURCE, TARGET, UNCLEAN

TP = TopicPartition("orders-v2", 3)
MOVED = HandoverPartition(TP, "b1", "b2", 2)


def state(offset, ms, replicas, leader, epoch):
    return Registration(offset, ASKED_US + ms * 1000, TP, replicas, (), (), replicas, leader, epoch, offset)


MADE = state(10, -60_000, (1,), 1, 4)
NOW = (MADE, state(90, 20, (2,), None, 5), state(91, 330, (2,), 2, 6))
"""A release that opens, then elects."""
ARTICLE = (MADE, state(90, 20, (2,), None, 5), state(91, 200, (2,), 2, 6))
PROBED = ProbeAnswers(
    acked=[(100, ASKED_US - 40_000), (101, ASKED_US + 10_000), (102, ASKED_US + 420_000), (103, ASKED_US + 425_000)],
    received=[(90, 4, ASKED_US - 30_000), (102, 6, ASKED_US + 431_000)],
)


def said(source=SOURCE, target=TARGET):
    return [*marks("b1", entries(source)), *marks("b2", entries(target))]


def ms(found):
    return {each.step: None if each.ts_us is None else (each.ts_us - ASKED_US) // 1000 for each in found.steps}


def test_every_step_of_a_move_is_found_with_its_instant() -> None:
    found = handover(MOVED, ASKED_US, NOW, said(), PROBED)
    assert ms(found) == {
        "accepted": 20,
        "seen": 41,
        "closed": 181,
        "elected": 330,
        "opened": 311,
        "produced": 420,
        "fetched": 431,
    }
    assert tuple(each.step for each in found.steps) == STEPS
    assert (found.clean, found.close_ms, found.longest_gap_s) == (True, 139, 0.41)
    told = {each.step: each.detail for each in found.steps}
    assert told["opened"] == "99 ms of recovery, waited 150 ms for the old broker to close it"
    assert told["elected"] == "offset 91, leader epoch 6"


@pytest.mark.parametrize(("before_ms", "found_ms"), [(-24, -24), (-40, None)])
def test_a_record_may_be_in_a_batch_that_the_controller_began_before_the_request(before_ms, found_ms) -> None:
    history = (MADE, state(90, before_ms, (2,), None, 5), state(91, 330, (2,), 2, 6))
    assert ms(handover(MOVED, ASKED_US, history, said(), PROBED))["accepted"] == found_ms


def test_the_articles_release_elects_before_it_opens() -> None:
    found = ms(handover(MOVED, ASKED_US, ARTICLE, said(ARTICLE_SOURCE, ARTICLE_TARGET), PROBED))
    assert (found["seen"], found["closed"], found["elected"], found["opened"]) == (40, 181, 200, 311)


def test_what_nothing_matches_has_no_instant_and_says_what_was_looked_for() -> None:
    found = handover(MOVED, ASKED_US, (MADE,), [], ProbeAnswers())
    assert set(ms(found).values()) == {None}
    assert (found.clean, found.close_ms, found.longest_gap_s) == (None, None, None)
    looked_for = {each.step: each.looked_for for each in found.steps}
    assert "broker 2 as the leader" in looked_for["elected"]
    assert "`partition orders-v2-3 is closed, cost … ms`" in looked_for["closed"]
    assert "on b2" in looked_for["opened"]


@pytest.mark.parametrize("lost", ["loaded log meta", "opened existing meta stream"])
def test_half_of_an_opening_is_none(lost: str) -> None:
    target = TARGET.replace(lost, "something else").replace("loaded leader epoch checkpoint with", "something else")
    assert ms(handover(MOVED, ASKED_US, NOW, said(target=target), PROBED))["opened"] is None


def test_lines_from_before_the_command_do_not_count() -> None:
    earlier = [replace(mark, ts_us=mark.ts_us - 60_000_000) for mark in said()]
    found = ms(handover(MOVED, ASKED_US, NOW, earlier, PROBED))
    assert (found["seen"], found["closed"], found["opened"]) == (None, None, None)


def test_a_killed_brokers_partition_is_recovered_by_the_new_one() -> None:
    found = handover(MOVED, ASKED_US, NOW, said("", UNCLEAN), PROBED)
    assert found.clean is False
    assert (ms(found)["closed"], ms(found)["seen"], ms(found)["opened"]) == (None, 52, 311)


def test_records_that_the_old_leader_wrote_are_not_the_new_ones() -> None:
    # Acknowledged after the command, written before it: its epoch tells.
    late = ProbeAnswers(acked=[(101, ASKED_US + 200_000)], received=[(101, 4, ASKED_US + 210_000)])
    found = ms(handover(MOVED, ASKED_US, NOW, said(), late))
    assert (found["produced"], found["fetched"]) == (None, None)


def test_a_broker_that_writes_before_it_is_elected_is_the_new_one() -> None:
    early = ProbeAnswers(acked=[(102, ASKED_US + 325_000)], received=[(102, 5, ASKED_US + 331_000)])
    assert ms(handover(MOVED, ASKED_US, NOW, said(), early))["produced"] == 325


def test_many_partitions_are_told_apart() -> None:
    other = HandoverPartition(TopicPartition("orders-v2", 30), "b1", "b2", 2)
    first, second = handovers([MOVED, other], ASKED_US, NOW, said(), {TP: PROBED})
    assert first == handover(MOVED, ASKED_US, NOW, said(), PROBED)
    assert second.close_ms == 188
    assert ms(second)["accepted"] is None
    assert ms(second)["closed"] == 230


def test_the_longest_pause_counts_from_the_command_on() -> None:
    assert longest_gap_s([0, 9_000_000, 9_500_000], 9_200_000) == 0.5
    assert longest_gap_s([9_000_000, 0], 8_000_000) == 9.0
    assert longest_gap_s([5], 0) is None
