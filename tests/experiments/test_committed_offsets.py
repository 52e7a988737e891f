"""Groups that commit before a broker leaves: what is compared afterwards, and what a coordinator may not answer."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from testbed.experiments import committed_offsets
from testbed.experiments.committed_offsets import EARLIER, GROUPS, LATEST, IdleGroups
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import TopicPartition

PARTITIONS = [TopicPartition("scale", 0), TopicPartition("scale", 1)]
FIRST = GROUPS[0]


class Coordinators:
    """What all groups have committed; requests that are still refused; and each commit."""

    def __init__(self):
        self.offsets, self.refusals, self.commits = {}, 0, []

    def _answers(self):
        if self.refusals:
            self.refusals -= 1
            raise KafkaError("ask", "NOT_COORDINATOR")

    def commit_offsets(self, group, offsets):
        self._answers()
        self.commits.append((group, set(offsets.values())))
        self.offsets.setdefault(group, {}).update(offsets)

    def committed_offsets(self, groups):
        self._answers()
        return {group: self.offsets[group] for group in groups if group in self.offsets}


@pytest.fixture
def coordinators(monkeypatch):
    monkeypatch.setattr(committed_offsets, "ANSWERED_S", 0.1)
    monkeypatch.setattr(committed_offsets, "INTERVAL_S", 0.01)
    return Coordinators()


@pytest.fixture
def groups(coordinators):
    return IdleGroups(SimpleNamespace(admin=lambda: nullcontext(coordinators)), PARTITIONS)


def test_offsets_that_are_there_again_after_some_refusals(coordinators, groups):
    coordinators.refusals = 2
    groups.commit()
    assert coordinators.commits == [(group, {offset}) for offset in (EARLIER, LATEST) for group in GROUPS]
    coordinators.refusals = 2
    found = groups.compare()
    assert (found.groups, found.partitions, found.wrong, found.problem) == (8, 2, (), "")


def test_the_groups_are_of_every_partition_of_the_internal_topic():
    def java(text):
        code = 0
        for character in text:
            code = (31 * code + ord(character)) & 0xFFFFFFFF
        return code & 0x7FFFFFFF

    assert {java(group) % 4 for group in GROUPS} == {0, 1, 2, 3}


def test_an_offset_that_went_back_and_a_group_that_is_gone_are_wrong(coordinators, groups):
    groups.commit()
    coordinators.offsets[FIRST][PARTITIONS[1]] = EARLIER
    del coordinators.offsets[GROUPS[7]]
    assert groups.compare().wrong == (
        "idle-0 has offset 1 of scale-1, not 2",
        "idle-7 has no offset of scale-0, not 2",
        "idle-7 has no offset of scale-1, not 2",
    )


def test_a_coordinator_that_answers_late_is_asked_again(coordinators, groups, monkeypatch):
    groups.commit()
    coordinators.offsets[FIRST][PARTITIONS[0]] = EARLIER
    asked = []

    def read(_groups):
        asked.append(1)
        if len(asked) == 3:
            coordinators.offsets[FIRST][PARTITIONS[0]] = LATEST
        return coordinators.offsets

    monkeypatch.setattr(coordinators, "committed_offsets", read)
    assert groups.compare().wrong == ()


def test_coordinators_that_refuse_all_the_time_lose_nothing_for_sure(coordinators, groups):
    coordinators.refusals = 10_000
    groups.commit()
    never = groups.compare()
    assert (never.wrong, never.problem) == ((), "ask: NOT_COORDINATOR")
    coordinators.refusals = 0
    groups.commit()
    coordinators.refusals = 10_000
    assert groups.compare().problem == "ask: NOT_COORDINATOR"
