"""Kinds of log lines are the same for two releases; one that is new says so, and what chance does says nothing."""

from random import Random

import pytest

from results.compare.log_lines import LOG_LINES, MORE_KINDS, LineChange, line_kinds, line_tallies, new_lines
from results.contract.logs import HostLog, LogFinding

WARN = "WARN ReplicaManager: A line."
OTHER = "WARN Partition: Another line."
UNKNOWN = (
    "[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Received UNKNOWN_TOPIC_ID from the leader for partition {}. "
    "This error may be returned transiently when the partition is being created or deleted, but it is not expected to "
    "persist."
)


def log(*texts, host="b1", level="WARN", logger="kafka.server.ReplicaManager", **other):
    findings = tuple(LogFinding(host, number, level, logger, text, 1) for number, text in enumerate(texts))
    return HostLog(host, findings=findings, **other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (UNKNOWN.format("control-8df100-2"), UNKNOWN.format("control-acceab-11")),
        (UNKNOWN.format("control-891121-3"), UNKNOWN.format("control-4acce2-0")),
        ("log of qN7FZtYRQYKFbHmfWfXTUg:t-0", "log of FnFO2U1YTCCz_Ocv-_jZQQ:t-12"),
        ("b1 lost b2 after 0.5 s", "b3 lost b1 after 12 s"),
        ("no answer of /198.19.0.11:9094", "no answer of /198.19.12.3:50112"),
        ("node -1 has 1,024 bytes", "node 2 has 12 bytes"),
        ("lock 0x7f00a1 of Foo@67884041", "lock 0x7f99 of Foo@6788404a"),
        ("id 550e8400-e29b-41d4-a716-446655440000", "id 12345678-0000-1111-2222-0123456789ab"),
        ("Partitions [t-1, t-22, t-3] stay", "Partitions [t-4] stay"),
        ("Lags {t-1=5, t-2=77}", "Lags {t-9=1}"),
    ],
)
def test_lines_that_differ_in_hosts_numbers_and_ids_are_one_kind(one, other):
    hosts = [HostLog("b2"), HostLog("b3")]
    assert line_kinds([log(one), *hosts]) == line_kinds([log(other), *hosts])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Connection to node 1 failed", "Connection to node 1 closed"),
        ("cannot append: java.io.IOException: x", "cannot append: java.lang.NullPointerException: x"),
        ("facade of a topic", "topic of a facade"),
        ("[a-1, b-1]", "[a-1, c-1]"),
    ],
)
def test_other_words_are_another_kind(one, other):
    assert line_kinds([log(one)]) != line_kinds([log(other)])


def test_the_class_of_a_line_counts_and_its_package_does_not():
    moved = line_kinds([log("A line.", logger="org.apache.kafka.server.ReplicaManager")])
    assert line_kinds([log("A line.")]) == moved == (WARN,)
    assert line_kinds([log("A line.", logger="kafka.log.LogManager")]) != moved
    assert line_kinds([log("A line.", level="ERROR")]) != moved
    assert line_kinds([log("A line."), log("A line.", host="b2")]) == moved


def test_a_text_that_the_manifest_holds_in_part_is_the_same_kind_wherever_it_was_cut():
    texts = [f"Partitions {', '.join(f't-{n}' for n in range(first, 200))}" for first in range(9)]
    assert len({line_kinds([log(f"{text[:399]}…")]) for text in texts}) == 1
    thrown = ": java.io.IOException: it failed"
    assert len({line_kinds([log(f"{text[:299]}…{thrown}")]) for text in texts}) == 1
    [long] = line_kinds([log("word " * 60)])
    assert len(long) < 200 and long.endswith("…")


def test_logs_that_were_not_read_whole_say_nothing():
    assert line_kinds(None) is line_kinds([]) is None
    assert line_kinds([log(), log("A line.", host="b2", problem="the log was replaced")]) is None
    assert line_kinds([log(), log(host="b2")]) == ()


def test_more_kinds_than_a_run_records_are_a_kind_and_a_candidate_that_has_them_is_named():
    assert line_kinds([log("A line.", more=1), log(host="b2")]) == (MORE_KINDS, WARN)
    [change] = changes(*[(runs(WARN), runs(MORE_KINDS, WARN, OTHER))] * 8, adjusted=0.004)
    assert (change.kinds, change.verdict, change.runs) == ((MORE_KINDS, OTHER), "REGRESSED", 8)
    assert f"new alone logs it in 8, old alone in 0: {MORE_KINDS} (and 1 more kind in the same runs)" in str(change)


def test_a_run_with_more_kinds_than_are_recorded_may_have_any_kind():
    [tally] = line_tallies("old", "new", [(runs(MORE_KINDS), runs(WARN))] * 8)
    assert (tally.kinds, tally.counts.worse, tally.counts.better) == ((MORE_KINDS,), 0, 8)
    assert line_tallies("old", "new", [(runs(MORE_KINDS, WARN), runs(MORE_KINDS, OTHER))] * 8) == []


def runs(*kinds):
    return frozenset(kinds)


def changes(*pairs, adjusted=None):
    found = [each for each in line_tallies("old", "new", pairs) if each.new]
    return [LineChange.of_tally(each, adjusted, 0.05) for each in found]


def test_a_pair_counts_when_one_run_alone_has_the_line():
    [tally] = line_tallies("old", "new", [(runs(), runs(WARN))] * 3 + [(runs(WARN), runs())] + [(runs(WARN),) * 2] * 2)
    counts = tally.counts
    assert (counts.criterion, counts.pairs, counts.worse, counts.better) == (LOG_LINES, 6, 3, 1)
    assert line_tallies("old", "new", [(runs(WARN), runs(WARN)), (runs(), runs())]) == []
    assert line_tallies("old", "new", []) == []


def test_kinds_of_the_same_runs_are_one_test():
    both = [(runs(), runs(WARN, OTHER))] * 4
    assert [each.kinds for each in line_tallies("old", "new", both)] == [(OTHER, WARN)]
    [change] = changes(*both)
    assert str(change) == (
        "of 4 pairs, new alone logs it in 4, old alone in 0: WARN Partition: Another line. (and 1 more kind in the "
        "same runs)"
    )
    assert {each.kinds for each in line_tallies("old", "new", [*both, (runs(), runs(WARN))])} == {(OTHER,), (WARN,)}


def test_a_line_in_the_place_of_another_one_of_its_class_is_named_and_says_nothing():
    reworded = "WARN ReplicaManager: The same in other words."
    [change] = changes(*[(runs(WARN), runs(reworded))] * 8)
    assert (change.kinds, change.verdict, change.runs, change.replaces, change.of) == ((reworded,), "OK", 0, 8, 8)
    assert "in 8 it replaces another line of its class" in str(change)
    [change] = changes(*[(runs(OTHER), runs(WARN))] * 8, adjusted=0.004)
    assert (change.kinds, change.verdict, change.runs, change.replaces) == ((WARN,), "REGRESSED", 8, 0)


@pytest.mark.parametrize(
    ("worse", "better", "same", "verdict"),
    [
        (1, 0, 7, "OK"),
        (4, 0, 4, "OK"),
        (2, 0, 0, "OK"),
        (3, 0, 0, "NOISY"),  # every pair, and too few for a test
        (5, 0, 3, "NOISY"),  # 1 in 32, by itself
        (5, 1, 2, "OK"),
    ],
)
def test_without_a_test_that_rejects_chance_the_line_is_named_and_mostly_decides_nothing(worse, better, same, verdict):
    pairs = [(runs(), runs(WARN))] * worse + [(runs(WARN), runs())] * better + [(runs(), runs())] * same
    [change] = changes(*pairs)
    assert (change.verdict, change.runs, change.reverse, change.of) == (verdict, worse, better, worse + better + same)
    [change] = changes(*pairs, adjusted=0.06)
    assert change.verdict == verdict


def test_what_the_baseline_logs_more_often_is_no_news():
    assert changes(*[(runs(WARN), runs())] * 8) == []


NONE = runs()


class TestNights:
    def test_a_line_counts_on_the_night_that_excludes_chance_and_is_named_before_and_after(self):
        earlier, said = [NONE] * 10, []
        for _night in range(5):
            [new] = new_lines(earlier, [runs(WARN)])
            said.append((new.runs, new.before, new.found))
            earlier.append(runs(WARN))
        assert said == [(1, 10, False), (2, 10, False), (3, 10, True), (4, 10, False), (5, 10, False)]
        assert str(new) == "logged in the newest 5 runs, in none of 10 before: WARN ReplicaManager: A line."

    def test_nights_that_are_judged_at_once_are_as_one(self):
        earlier = [*[NONE] * 10, *[runs(WARN)] * 4]
        assert [new_lines(earlier, [runs(WARN)], unjudged)[0].found for unjudged in range(6)] == [
            *[False, False],
            *[True] * 4,
        ]

    def test_three_runs_of_one_night_are_enough_and_one_run_never_is(self):
        assert [each.found for each in new_lines([NONE] * 10, [runs(WARN)] * 3)] == [True]
        assert [each.found for each in new_lines([NONE] * 60, [runs(WARN)])] == [False]
        assert [each.found for each in new_lines([NONE] * 13, [runs(WARN)] * 2)] == [True]
        assert [each.found for each in new_lines([NONE] * 12, [runs(WARN)] * 2)] == [False]

    def test_every_run_of_tonight_has_it_and_no_earlier_one(self):
        assert new_lines([NONE] * 20, [runs(WARN), runs(WARN), NONE]) == ()
        assert new_lines([runs(WARN), *[NONE] * 20], [runs(WARN)] * 3) == ()
        assert new_lines([NONE] * 9, [runs(WARN)] * 3) == ()
        assert new_lines([NONE] * 20, []) == new_lines([], [runs(WARN)]) == ()

    def test_lines_of_the_same_runs_are_one_entry(self):
        [new] = new_lines([NONE] * 12, [runs(WARN, OTHER)] * 3)
        assert new.kinds == (OTHER, WARN)

    def test_a_run_with_more_kinds_than_are_recorded_says_nothing_of_other_kinds(self):
        many = runs(MORE_KINDS, OTHER)
        [new] = new_lines([*[NONE] * 10, many, *[runs(WARN)] * 2], [runs(WARN)], 1)
        assert (new.kinds, new.runs, new.before, new.found) == ((WARN,), 3, 10, True)
        [new] = new_lines([*[many] * 3, *[NONE] * 10], [runs(WARN)] * 3)
        assert (new.before, new.found) == (10, True)
        assert new_lines([many] * 20, [runs(WARN)] * 3) == ()
        [new] = new_lines([NONE] * 10, [many] * 3)
        assert (new.kinds, new.found) == ((MORE_KINDS, OTHER), True)

    @pytest.mark.parametrize("rate", [0.01, 0.03, 0.1, 0.3, 0.6])
    @pytest.mark.parametrize("each", [1, 3])
    def test_lines_that_come_by_chance_alarm_in_few_nights(self, rate, each):
        random, alarms = Random(7), 0
        for _history in range(20):
            ran = [runs(WARN) if random.random() < rate else NONE for _ in range(12 + 20 * each)]
            for night in range(20):
                first = 12 + night * each
                alarms += any(new.found for new in new_lines(ran[:first][-60:], ran[first : first + each]))
        assert alarms <= 2, f"{alarms} of 400 nights"
