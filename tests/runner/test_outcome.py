from dataclasses import replace
from random import Random

import pytest

from results.compare.judgement import CriterionTally
from testbed.runner.campaign import VariantGroup, default_measures, fewest_pairs_to_tell
from testbed.runner.comparison import mixed_software, narrow_enough, outcome
from testbed.runner.journal import CanaryReading, RunBegun, RunDone, RunFailed, campaign_state
from testbed.runner.variant import UPGRADE, Variant
from tests.runner.fakes import campaign

KNOWN = ("records-intact", "x")
RECORDS = ("records-intact", "live-records producer-1", "live-records consumer-1")
"""As `RunDone` names them: with the client."""
UNDER = "under-min-isr"
GOOD = {"cpu": 0.05, "nic": 1.0}


def entries(asked, value, *, reading=lambda index: GOOD, verdict=lambda slot: "pass", failed=lambda slot: (), **other):
    """A whole campaign's journal; `value`, `verdict` and `failed` are of a slot, `reading` of what comes before it."""
    found = []
    for slot in asked.slots:
        found.append(CanaryReading(reading(slot.index), other.get("environment", lambda index: "one")(slot.index)))
        found.append(RunBegun(slot.index, f"run-{slot.index}"))
        software = other.get("software", lambda slot: "jars")(slot)
        values, broken = {other.get("measure", "move-seconds"): value(slot)}, failed(slot)
        kept = other.get("kept", lambda slot: tuple(name for name in KNOWN if name not in failed(slot)))(slot)
        done = RunDone(slot.index, f"run-{slot.index}", verdict(slot), values, broken, software, 90.0, kept)
        found.append(replace(done, logged=other.get("logged", lambda slot: None)(slot)))
    return [*found, CanaryReading(reading(len(asked.slots)), "one")]


def noise(slot):
    return 1 + 0.004 * ((slot.index * 7) % 5 - 2)


def told(asked, journal):
    return outcome(asked, campaign_state(journal))


def test_a_slower_candidate_is_a_regression_with_its_effect():
    asked = campaign(repeats=8)
    found = told(asked, entries(asked, lambda slot: (50 if slot.variant == "A" else 55) * noise(slot)))
    assert found.verdict == "REGRESSED"
    [finding] = found.findings
    assert finding.effect.low < 1.1 < finding.effect.high
    assert [(row.label, row.runs) for row in found.rows] == [("A", {"pass": 8}), ("B", {"pass": 8})]
    assert 54 < found.rows[1].medians["move-seconds"] < 56


def test_the_same_is_ok_and_faster_is_improved():
    asked = campaign(repeats=8)
    assert told(asked, entries(asked, lambda slot: 50 * noise(slot))).verdict == "OK"
    faster = entries(asked, lambda slot: (50 if slot.variant == "A" else 45) * noise(slot))
    assert told(asked, faster).verdict == "IMPROVED"


def test_a_measure_that_may_be_0_is_judged_by_its_difference_and_the_campaign_may_end():
    asked = campaign(repeats=8, measures=(UNDER,))

    def found(candidate):
        return told(asked, entries(asked, lambda slot: candidate if slot.variant == "B" else 0.0, measure=UNDER))

    assert (found(5.0).verdict, found(0.0).verdict) == ("REGRESSED", "OK")
    assert "0 %" in narrow_enough(found(0.0).findings, asked.threshold)
    assert found(5.0).rows[1].medians == {UNDER: 5.0}


def test_each_candidate_is_compared_with_the_first_variant_and_has_a_verdict_of_its_own():
    asked = campaign("ABC", repeats=8)
    found = told(asked, entries(asked, lambda slot: (56 if slot.variant == "C" else 50) * noise(slot)))
    assert [(f.comparison.candidate, f.verdict) for f in found.findings] == [("B", "OK"), ("C", "REGRESSED")]
    assert found.verdict == "REGRESSED"


def test_pairs_around_a_moved_canary_are_left_out():
    asked = campaign(repeats=8)
    journal = entries(
        asked,
        lambda slot: 50 * noise(slot) * (2 if slot.index in (5, 6) else 1),
        reading=lambda index: {"cpu": 0.10, "nic": 1.0} if index == 6 else GOOD,
    )
    [finding] = told(asked, journal).findings
    assert [bool(pair.moved) for pair in finding.comparison.pairs] == [n in (2, 3) for n in range(8)]
    assert finding.verdict == "OK"
    assert finding.why.endswith("2 pairs left out: the machine changed")
    assert "cpu +100% between readings" in finding.comparison.pairs[2].moved


def test_a_machine_that_keeps_changing_is_told_as_that():
    asked = campaign(repeats=8)
    journal = entries(
        asked,
        lambda slot: 50 * (1.5 if slot.variant == "B" else 1),
        reading=lambda index: {"cpu": 0.05 * (1.3 if index in (1, 5, 9, 13) else 1), "nic": 1.0},
    )
    found = told(asked, journal)
    assert found.verdict == "ENV-CHANGED"
    assert "the machine changed in" in found.findings[0].why


def test_another_class_of_environment_is_a_change():
    asked = campaign(repeats=8)
    journal = entries(asked, lambda slot: 50.0, environment=lambda index: "one" if index < 9 else "two")
    [finding] = told(asked, journal).findings
    assert [n for n, pair in enumerate(finding.comparison.pairs) if pair.moved] == [4, 7]
    assert finding.comparison.pairs[4].moved == "environment one and two"


def test_a_run_without_a_look_at_the_machine_after_it_is_not_taken_for_a_good_one():
    asked = campaign(repeats=8)
    [finding] = told(asked, entries(asked, lambda slot: 50.0)[:-1]).findings
    assert finding.comparison.pairs[7].moved == "no look at the machine before and after each run"


def test_inconclusive_runs_have_no_values_and_too_few_pairs_are_no_data():
    asked = campaign(repeats=8)
    journal = entries(
        asked,
        lambda slot: 50.0,
        verdict=lambda slot: "inconclusive" if slot.variant == "B" and slot.block < 4 else "pass",
    )
    found = told(asked, journal)
    assert found.verdict == "NO-DATA"
    assert found.findings[0].why == "4 pairs, at least 5 are needed; 4 of 8 have no value on one side"
    assert found.rows[1].runs == {"inconclusive": 4, "pass": 4}


def test_a_series_that_has_not_begun_says_nothing():
    asked = campaign(repeats=8)
    assert told(asked, []).verdict == "NO-DATA"
    assert told(asked, []).broken == ()


def failing(*blocks, variant="B", name="records-intact"):
    return lambda slot: (name,) if slot.variant == variant and slot.block in blocks else ()


def test_a_criterion_that_fails_for_the_candidate_alone_beyond_luck_is_a_regression_whatever_the_figures_say():
    asked = campaign(repeats=8)
    found = told(asked, entries(asked, lambda slot: 50.0, failed=failing(*range(6))))
    assert found.verdict == "REGRESSED"
    [broken] = found.broken
    assert (broken.candidate, broken.criterion, broken.verdict) == ("B", "records-intact", "REGRESSED")
    assert (broken.runs, broken.reverse, broken.of, broken.p) == (6, 0, 8, pytest.approx(2**-6))
    assert broken.adjusted == pytest.approx(2 * 2**-6)  # with one measure


def test_what_luck_does_too_is_said_to_be_open_and_one_failure_is_nothing():
    asked = campaign(repeats=8)
    found = told(asked, entries(asked, lambda slot: 50.0, failed=failing(1, 5, name="x")))
    assert (found.verdict, [(each.verdict, each.adjusted) for each in found.broken]) == ("NOISY", [("NOISY", None)])
    assert told(asked, entries(asked, lambda slot: 50.0, failed=failing(1, name="x"))).verdict == "OK"
    both = entries(asked, lambda slot: 50.0, failed=lambda slot: ("x",) if slot.block in (1, 5) else ())
    assert told(asked, both).verdict == "OK"


def test_one_run_that_loses_a_record_leaves_the_verdict_open_unless_the_baseline_lost_one():
    asked = campaign(repeats=8)
    for name in RECORDS:
        kept = lambda slot, name=name: () if name in failing(1, name=name)(slot) else (name,)  # noqa: E731
        found = told(asked, entries(asked, lambda slot: 50.0, failed=failing(1, name=name), kept=kept))
        assert (found.verdict, [(each.criterion, each.runs) for each in found.broken]) == ("NOISY", [(name, 1)])
    both = {("A", 5), ("B", 1)}
    lost = entries(
        asked, lambda slot: 50.0, failed=lambda slot: KNOWN[:1] if (slot.variant, slot.block) in both else ()
    )
    assert told(asked, lost).verdict == "OK"


def test_a_criterion_the_baseline_was_never_judged_on_says_nothing_of_the_candidate():
    asked = campaign(repeats=8)
    journal = entries(
        asked,
        lambda slot: 50.0,
        verdict=lambda slot: "inconclusive" if slot.variant == "A" else "fail",
        failed=failing(*range(8), name="x"),
        kept=lambda slot: (),
    )
    found = told(asked, journal)
    assert (found.verdict, found.broken) == ("NO-DATA", ())


def unended(asked, hangs, ended):
    """A journal in which the runs of B in the first `hangs` blocks have no end: `ended` is what the journal says."""
    lost = {slot.index for slot in asked.slots if slot.variant == "B" and slot.block < hangs}

    def entry(one):
        if not isinstance(one, RunDone) or one.slot not in lost:
            return one
        if isinstance(ended, RunFailed):
            return replace(ended, slot=one.slot)
        return replace(one, verdict="inconclusive", kept=(), ended=ended)

    return [entry(one) for one in entries(asked, lambda slot: 50 * noise(slot))]


STUCK = RunFailed(0, "Kafka on b1 does not run", 9.0, stuck=True)


@pytest.mark.parametrize(
    ("hangs", "ended", "verdict"),
    [
        (8, STUCK, "REGRESSED"),
        (8, False, "REGRESSED"),
        (3, STUCK, "NOISY"),
        (1, STUCK, "NOISY"),
        (1, False, "NOISY"),
        (0, STUCK, "OK"),
        (8, replace(STUCK, stuck=False), "OK"),
        (8, None, "OK"),
    ],
)
def test_runs_that_the_candidates_kafka_keeps_from_their_end_are_no_pass(hangs, ended, verdict):
    """They have no values: the other eight pairs or more are as fast as the baseline."""
    asked = campaign(repeats=16)
    journal = unended(asked, hangs, ended)
    found = told(asked, journal)
    assert (found.verdict, found.findings[0].verdict) == (verdict, "OK")
    counts = [(each.criterion, each.verdict, each.runs, each.reverse, each.of) for each in found.broken]
    assert counts == ([] if verdict == "OK" else [("run-complete", verdict, hangs, 0, 16)])


def test_a_hang_counts_after_a_resume_and_on_the_baselines_side_it_is_no_regression():
    asked = campaign(repeats=16)
    whole = entries(asked, lambda slot: 50 * noise(slot))
    hung = [replace(STUCK, slot=slot.index) for slot in asked.slots if slot.variant == "B" and slot.block < 8]
    assert told(asked, [*hung, *whole]).verdict == "REGRESSED"
    other = [replace(STUCK, slot=slot.index) for slot in asked.slots if slot.variant == "A" and slot.block < 8]
    assert told(asked, [*other, *whole]).verdict == "OK"
    assert told(asked, [*hung, *other, *whole]).verdict == "OK"


def test_a_single_hang_in_five_pairs_leaves_the_verdict_open_also_without_a_run_of_the_baseline():
    asked = campaign(repeats=6)
    whole = entries(asked, lambda slot: 50 * noise(slot))
    assert told(asked, whole).verdict == "OK"
    [last] = [slot.index for slot in asked.slots if slot.variant == "B" and slot.block == 5]
    hung = [*[each for each in whole if getattr(each, "slot", None) != last], replace(STUCK, slot=last)]
    found = told(asked, hung)
    assert (found.verdict, [each.verdict for each in found.findings]) == ("NOISY", ["OK"])
    assert [(each.criterion, each.runs, each.unpaired, each.of) for each in found.broken] == [("run-complete", 1, 0, 6)]
    # The budget ends in mid-block, so the baseline has no run there.
    alone = [each for each in hung if getattr(each, "slot", None) == last or getattr(each, "slot", 0) // 2 < 5]
    found = told(asked, alone)
    assert found.verdict == "NOISY"
    assert [(each.criterion, each.runs, each.unpaired, each.of) for each in found.broken] == [("run-complete", 0, 1, 5)]


def test_criteria_of_moved_pairs_do_not_count_but_a_lost_record_does():
    asked = campaign(repeats=8)

    def found(*blocks, name):
        moving = lambda index: "one" if index % 2 else "two"  # noqa: E731
        failed = failing(*blocks, name=name)
        return told(asked, entries(asked, lambda slot: 50.0, failed=failed, environment=moving))

    assert all(pair.moved for pair in found(0, name="x").findings[0].comparison.pairs)
    assert found(*range(8), name="x").broken == ()
    for blocks, verdict in ((range(8), "REGRESSED"), ((3,), "NOISY")):
        [lost] = found(*blocks, name="records-intact").broken
        assert (lost.verdict, lost.runs, lost.of) == (verdict, len(blocks), 8)


@pytest.mark.parametrize("made", [True, False])
def test_a_record_that_is_lost_leaves_the_verdict_open_also_where_the_baseline_was_not_judged(made):
    asked = campaign(repeats=8)
    whole = entries(
        asked,
        lambda slot: 50.0,
        verdict=lambda slot: "inconclusive" if (slot.variant, slot.block) == ("A", 1) else "pass",
        failed=failing(1, name="live-records producer-1"),
        kept=lambda slot: (),
    )
    gone = () if made else [slot.index for slot in asked.slots if (slot.variant, slot.block) == ("A", 1)]
    found = told(asked, [each for each in whole if getattr(each, "slot", None) not in gone])
    assert (found.verdict, [each.verdict for each in found.findings]) == ("NOISY", ["OK"])
    [lost] = found.broken
    assert (lost.criterion, lost.runs, lost.unpaired, lost.of) == ("live-records producer-1", 0, 1, 0)


def test_a_criterion_that_fails_now_and_then_on_both_sides_is_seldom_called_a_regression():
    asked, random, called = campaign(repeats=10), Random(5), 0
    for _ in range(200):
        bad = {slot.index for slot in asked.slots if random.random() < 0.1}
        journal = entries(asked, lambda slot: 50.0, failed=lambda slot, bad=bad: ("x",) if slot.index in bad else ())
        called += told(asked, journal).verdict == "REGRESSED"
    assert called <= 10


@pytest.mark.parametrize(
    ("worse", "better", "p", "decidable"),
    [(0, 0, 1.0, False), (2, 0, 0.25, False), (5, 0, 1 / 32, True), (0, 5, 1.0, True), (5, 1, 7 / 64, True)],
)
def test_the_chance_of_discordant_pairs_is_counted(worse, better, p, decidable):
    tally = CriterionTally("A", "B", "x", 10, worse, better)
    assert (tally.p_worse, tally.decidable(0.05)) == (pytest.approx(p), decidable)


def test_the_criteria_are_in_the_family_of_the_measures():
    names = tuple(f"c{n}" for n in range(8))
    asked = campaign(repeats=8)
    journal = entries(
        asked,
        lambda slot: 50.0,
        failed=lambda slot: names if slot.variant == "B" and slot.block < 5 else (),
        kept=lambda slot: () if slot.variant == "B" and slot.block < 5 else names,
    )
    found = told(asked, journal)  # each by itself: 1 in 32; of eight, one is expected in four campaign
    assert {each.verdict for each in found.broken} == {"NOISY"}


def test_criteria_that_fail_in_the_same_runs_are_one_test():
    """A throttle that leaks fails many criteria in every run: the more there were, the less each counted."""
    names = tuple(f"c{n}" for n in range(20))
    asked = campaign(repeats=8)

    def found(broken):
        failed = lambda slot: tuple(each for each in names if slot.variant == "B" and broken(each, slot))  # noqa: E731
        kept = lambda slot: tuple(set(names) - set(failed(slot)))  # noqa: E731
        return told(asked, entries(asked, lambda slot: 50 * noise(slot), failed=failed, kept=kept)).broken

    alike = found(lambda _name, _slot: True)
    assert {each.criterion for each in alike} == {*names, "one criterion or another"}
    assert {each.verdict for each in alike} == {"REGRESSED"}
    assert [each.adjusted for each in alike] == [pytest.approx(2 * 2**-8)] * 21  # with one measure
    apart = found(lambda name, slot: slot.block != int(name[1:]) % 8 and slot.block != int(name[1:]) // 8 + 5)
    assert {each.verdict for each in apart if each.criterion in names} == {"NOISY"}


WARN, ALSO = "WARN ReplicaManager: A line.", "WARN Partition: Another line."


def logging(*blocks, kinds=(WARN,)):
    """The candidate's runs of these blocks log a line; all others log nothing."""
    return lambda slot: kinds if slot.variant == "B" and slot.block in blocks else ()


def said_of_lines(found):
    return [(each.verdict, each.kinds, each.runs, each.reverse, each.of) for each in found.lines]


def test_a_log_line_of_every_run_of_the_candidate_alone_is_a_regression():
    asked = campaign(repeats=8)
    found = told(asked, entries(asked, lambda slot: 50.0, logged=logging(*range(8))))
    assert found.verdict == "REGRESSED"
    assert said_of_lines(found) == [("REGRESSED", (WARN,), 8, 0, 8)]
    assert found.lines[0].adjusted == pytest.approx(2 * 2**-8)  # with one measure
    many = logging(*range(8), kinds=tuple(f"WARN C{n}: x" for n in range(30)))
    assert told(asked, entries(asked, lambda slot: 50.0, logged=many)).verdict == "REGRESSED"


def test_a_log_line_of_one_run_is_named_and_decides_nothing():
    asked = campaign(repeats=8)
    found = told(asked, entries(asked, lambda slot: 50.0, logged=logging(3)))
    assert (found.verdict, said_of_lines(found)) == ("OK", [("OK", (WARN,), 1, 0, 8)])
    gone = entries(asked, lambda slot: 50.0, logged=lambda slot: (WARN,) if slot.variant == "A" else ())
    assert (told(asked, gone).verdict, told(asked, gone).lines) == ("OK", ())
    both = entries(asked, lambda slot: 50.0, logged=lambda slot: (WARN,))
    assert (told(asked, both).verdict, told(asked, both).lines) == ("OK", ())
    nothing = entries(asked, lambda slot: 50.0, logged=logging(3), verdict=lambda slot: "inconclusive")
    assert told(asked, nothing).verdict == "NO-DATA"


def test_a_run_whose_logs_were_not_read_whole_and_a_moved_pair_say_nothing_of_lines():
    asked = campaign(repeats=8)
    unread = entries(asked, lambda slot: 50.0, logged=lambda slot: (WARN,) if slot.variant == "B" else None)
    assert told(asked, unread).lines == ()
    moved = entries(
        asked, lambda slot: 50.0, logged=logging(*range(8)), environment=lambda index: "one" if index % 2 else "two"
    )
    assert told(asked, moved).lines == ()


def test_log_lines_that_come_now_and_then_on_both_sides_are_seldom_called_a_regression():
    asked, random, called = campaign(repeats=10), Random(5), 0
    for _ in range(200):
        logged = {slot.index: tuple(k for k in (WARN, ALSO) if random.random() < 0.4) for slot in asked.slots}
        found = told(asked, entries(asked, lambda slot: 50.0, logged=lambda slot, logged=logged: logged[slot.index]))
        called += found.verdict == "REGRESSED"
    assert called <= 10


def test_the_log_lines_of_a_qualification_are_held_together_over_its_scenarios():
    names = [f"suite/{n}" for n in range(6)]
    labels = [(f"{name}, old", f"{name}, new") for name in (*names, "upgrade from old")]
    groups = tuple(VariantGroup(each[0].partition(",")[0], each, 3, ()) for each in labels)
    variants = tuple(Variant(label, "kip73-two-node") for each in labels for label in each)
    asked = replace(campaign(), command="qualify", variants=variants, groups=groups)
    first = {slot.index for slot in asked.slots if slot.block % 3 == 0}

    def journal(logged):
        made = entries(asked, lambda slot: 50.0, logged=logged)
        return [each for each in made if isinstance(each, CanaryReading) or each.slot in first]

    new = told(asked, journal(lambda slot: (WARN,) if slot.variant.endswith("new") else ()))
    assert said_of_lines(new) == [("REGRESSED", (WARN,), 6, 0, 6)]
    assert (new.lines[0].baseline, new.lines[0].candidate) == ("old", "new")
    one = told(asked, journal(lambda slot: (WARN,) if slot.variant == "suite/3, new" else ()))
    assert said_of_lines(one) == [("OK", (WARN,), 1, 0, 6)]
    upgrade = told(asked, journal(lambda slot: (WARN,) if slot.variant == "upgrade from old, new" else ()))
    assert upgrade.lines == ()


def test_a_throttle_that_leaks_is_no_improvement():
    asked = campaign(repeats=8, measures=("steady-mean",))

    def against(candidate):
        rate = lambda slot: (0.97 if slot.variant == "A" else candidate) * noise(slot)  # noqa: E731
        return told(asked, entries(asked, rate, measure="steady-mean"))

    assert against(1.4).verdict == "REGRESSED"
    assert against(0.97).verdict == "OK"
    assert against(0.80).verdict == "REGRESSED"
    assert 1.39 < against(1.4).rows[1].medians["steady-mean"] < 1.41  # told as it is


def test_a_folder_that_was_built_anew_within_the_series_is_noticed():
    asked = campaign(repeats=2)
    journal = entries(
        asked,
        lambda slot: 50.0,
        software=lambda slot: f"jars {slot.index > 2}" if slot.variant == asked.slots[3].variant else "x",
    )
    assert mixed_software(asked, campaign_state(journal)) == [asked.slots[3].variant]


def test_an_upgrade_that_was_not_gone_through_with_is_no_other_kafka():
    asked = campaign(repeats=4)
    upgrade = replace(asked, variants=tuple(replace(each, experiment=UPGRADE) for each in asked.variants))
    half = [slot.index for slot in asked.slots if slot.variant == "B"][:2]

    def journal(verdicts):
        found = []
        for entry in entries(asked, lambda slot: 50.0, software=lambda slot: "ab"[slot.index in half]):
            changes = verdicts.get(entry.slot) if isinstance(entry, RunDone) else None
            found.append(replace(entry, verdict=changes) if changes else entry)
        return campaign_state(found)

    open_ones = journal(dict(zip(half, ("inconclusive", "fail"), strict=True)))
    assert mixed_software(upgrade, open_ones) == []
    assert mixed_software(asked, open_ones) == ["B"]
    assert mixed_software(upgrade, journal({})) == ["B"]


def test_what_no_run_of_either_has_is_not_compared_unless_they_have_nothing_at_all():
    usual = default_measures("compare", campaign().variants)
    asked = campaign(repeats=8, command="compare", measures=usual)
    found = told(asked, entries(asked, lambda slot: 50 * noise(slot)))
    assert [finding.comparison.measure.name for finding in found.findings] == ["move-seconds"]
    assert found.verdict == "OK"
    named = campaign(repeats=8, command="compare", measures=("move-seconds", "steady-mean"))
    found = told(named, entries(named, lambda slot: 50 * noise(slot)))
    assert [finding.verdict for finding in found.findings] == ["OK", "NO-DATA"]
    found = told(asked, entries(asked, lambda slot: 50 * noise(slot), measure="copied"))
    assert {finding.verdict for finding in found.findings} == {"NO-DATA"}


def test_a_comparison_from_before_costs_were_compared_is_judged_as_then():
    earlier = ("move-seconds", "steady-mean", "highest-11s", "cpu-per-gb")
    asked = campaign(repeats=8, command="compare", measures=earlier)
    found = told(asked, entries(asked, lambda slot: 50 * noise(slot)))
    assert [finding.comparison.measure.name for finding in found.findings] == ["move-seconds"]
    assert found.verdict == "OK"


def test_a_comparison_from_before_connections_were_counted_named_no_measure():
    """What no run had was NO-DATA then, as if the user had asked for it."""
    usual = default_measures("compare", campaign().variants)
    earlier = tuple(name for name in usual if name != "connections-opened")
    asked = campaign(repeats=8, command="compare", measures=earlier)
    found = told(asked, entries(asked, lambda slot: 50 * noise(slot)))
    assert [finding.comparison.measure.name for finding in found.findings] == ["move-seconds"]
    assert found.verdict == "OK"


def test_eight_pairs_tell_among_the_measures_of_a_comparison_of_releases():
    alike = [Variant("old", "kip73-two-node", kafka="4.2.1"), Variant("new", "kip73-two-node", kafka="4.3.1")]
    usual = default_measures("compare", alike)
    assert len(usual) == 11
    assert fewest_pairs_to_tell(len(usual)) == 8
    asked = campaign(repeats=8, command="compare", measures=usual)

    def journal(entry):
        if not isinstance(entry, RunDone):
            return entry
        slot = asked.slots[entry.slot]
        cpu = 7 * noise(slot) * (1.1 if slot.variant == "B" else 1)
        return replace(entry, values={**dict.fromkeys(usual, 50 * noise(slot)), "broker-cpu-per-gb": cpu})

    found = told(asked, [journal(entry) for entry in entries(asked, lambda slot: 50 * noise(slot))])
    assert [each.comparison.measure.name for each in found.findings if each.verdict == "REGRESSED"] == [
        "broker-cpu-per-gb"
    ]


def test_what_tells_of_different_amounts_is_asked_where_variants_may_move_such():
    alike = [Variant("old", "kip73-two-node", kafka="4.2.1"), Variant("new", "kip73-two-node", kafka="4.3.1")]
    others = [Variant("old", "kip73-two-node", settings=("rate=5MB/s",)), Variant("new", "kip73-two-node")]
    assert "seconds-per-gb" not in default_measures("compare", alike)
    assert "seconds-per-gb" in default_measures("compare", others)
    assert "seconds-per-gb" not in default_measures("qualify", others)
    assert "lowest-11s" in default_measures("sweep", alike)


def test_a_measure_with_noise_of_its_own_has_a_threshold_of_its_own():
    asked = campaign(repeats=8, measures=("cpu-per-gb",))
    wild = lambda slot: 50 * (1 + 0.06 * ((slot.index * 7) % 5 - 2) / 2)  # noqa: E731
    [finding] = told(asked, entries(asked, wild, measure="cpu-per-gb")).findings
    assert (finding.verdict, finding.why.split("; ")[0]) == ("OK", "not worse by 15 % or more")
    worse = lambda slot: wild(slot) * (1.4 if slot.variant == "B" else 1)  # noqa: E731
    assert told(asked, entries(asked, worse, measure="cpu-per-gb")).verdict == "REGRESSED"
    asked = campaign(repeats=8, measures=("cpu-per-gb",), threshold=0.2)
    [finding] = told(asked, entries(asked, wild, measure="cpu-per-gb")).findings
    assert finding.why.startswith("not worse by 20 % or more; ")


def test_what_fails_otherwise_each_time_is_counted_as_one():
    asked = campaign(repeats=9)
    names = tuple(f"rate-bound b{number}" for number in range(9))

    def failed(slot):
        return (names[slot.block],) if slot.variant == "B" else ()

    kept = lambda slot: tuple(set(names) - set(failed(slot)))  # noqa: E731
    found = told(asked, entries(asked, lambda slot: 50 * noise(slot), failed=failed, kept=kept))
    assert [(each.criterion, each.verdict) for each in found.broken] == [("one criterion or another", "REGRESSED")]
