from dataclasses import replace
from types import SimpleNamespace

from results.contract.document import decode, encode
from results.contract.handover import STEPS, HandoverRecord, HandoverStep, PartitionHandover
from results.contract.verdict import overall
from results.criteria.catalogue.handover import CRITERION, judge_handover, longest_pause, partitions_per_s
from results.criteria.findings import finding
from results.criteria.judgement import despite

ASKED_US = 1_000_000_000
TIMES = {"accepted": 20, "seen": 41, "closed": 181, "elected": 330, "opened": 311, "produced": 420, "fetched": 431}


def partition(number=0, *, clean=True, gap_s=0.4, **changed):
    at = {step: ASKED_US + ms * 1000 if ms is not None else None for step, ms in {**TIMES, **changed}.items()}
    steps = tuple(HandoverStep(step, at[step], f"a line of {step}") for step in STEPS)
    return PartitionHandover("orders", number, "b1", "b2", steps, clean, 139, gap_s)


def seen(*partitions, **more):
    return HandoverRecord("automq-1.6.0+0123456789ab", ASKED_US, partitions, **more)


def verdicts(found):
    return {each.name.removeprefix("handover-"): each.verdict for each in judge_handover(found)}


def why(found, name):
    return next(each.why for each in judge_handover(found) if each.name == f"handover-{name}")


def test_a_move_whose_steps_are_all_there_passes_and_tells_its_pace_and_pause() -> None:
    found = judge_handover(seen(partition(0), partition(1, elected=500, fetched=600)))
    assert overall(found) == "pass"
    told = {each.name: each.observed for each in found}
    assert told["handover-closed"] == "0.181 s in the middle, 0.181 s at most"
    assert told["handover-elected"] == "0.415 s in the middle, 0.500 s at most"
    assert partitions_per_s(seen(partition(0), partition(1, elected=500, fetched=600))) == 4.0
    assert longest_pause(seen(partition(0), partition(1, gap_s=0.7))) == (0.7, "orders-1")
    assert longest_pause(seen(partition(0), partition(1, gap_s=None))) is None


def test_nobody_looked_and_nothing_moved_are_inconclusive() -> None:
    assert [each.verdict for each in judge_handover(None)] == ["inconclusive"]
    assert [each.verdict for each in judge_handover(seen())] == ["inconclusive"]


def test_a_step_that_was_not_matched_is_inconclusive_and_never_took_no_time() -> None:
    found = seen(partition(0), partition(1, closed=None), problems=("b1: only half of its log was read",))
    told = verdicts(found)
    assert (told["closed"], told["order"], told["elected"]) == ("inconclusive", "inconclusive", "pass")
    assert "not matched in 1 of 2 partitions, orders-1 for one: looked for a line of closed; and b1" in why(
        found, "closed"
    )
    none = [each for each in judge_handover(seen(partition(closed=None))) if each.name == "handover-closed"]
    assert none[0].observed is None


def test_an_order_that_no_release_has_fails_and_rounding_does_not() -> None:
    assert verdicts(seen(partition(seen=12)))["order"] == "fail"
    assert "seen 8 ms before accepted" in why(seen(partition(seen=12)), "order")
    assert verdicts(seen(partition(seen=18)))["order"] == "pass"
    # What is out of order is so whatever else was not found.
    assert verdicts(seen(partition(seen=12, opened=None)))["order"] == "fail"


def test_an_order_is_left_open_where_clocks_were_set_or_differ_and_nothing_else_is() -> None:
    record = seen(partition(seen=12, clean=False))
    run = SimpleNamespace(manifest=SimpleNamespace(facts=SimpleNamespace(handover=record)))
    found = CRITERION.findings(run)  # type: ignore[arg-type]

    def failed(precondition: str) -> list[str]:
        shaky = finding(precondition, "", "inconclusive", "", observed=None, series=())
        judged = despite(CRITERION, run, found, [shaky])  # type: ignore[arg-type]
        return [each.name for each in judged if each.verdict == "fail"]

    assert failed("machine-load") == ["handover-order", "handover-clean"]
    assert failed("clock-steady") == failed("clocks-agree") == ["handover-clean"]


def test_both_orders_of_electing_and_opening_pass_and_a_handover_before_the_upload_is_told() -> None:
    assert verdicts(seen(partition(elected=200)))["order"] == "pass"
    early = seen(partition(closed=900))
    assert verdicts(early)["order"] == "pass"
    assert "1 partition was opened before being closed" in why(early, "order")


def test_a_partition_that_was_closed_in_order_is_not_recovered() -> None:
    assert verdicts(seen(partition(clean=False)))["clean"] == "fail"
    assert verdicts(seen(partition(clean=None)))["clean"] == "inconclusive"
    assert why(seen(partition(clean=None)), "clean") == "orders-0: the new broker logged nothing of it"
    two = seen(partition(clean=None), partition(1, clean=None))
    assert why(two, "clean") == "orders-0, and 1 more: the new broker logged nothing of it"


def test_the_variant_in_which_the_old_broker_dies() -> None:
    killed = {"killed_us": ASKED_US + 30_000}
    found = verdicts(seen(partition(closed=None, clean=False), **killed))
    assert (found["closed"], found["clean"], found["order"]) == ("pass", "pass", "pass")
    # It was in time to close: the run is not about what it says it is.
    assert verdicts(seen(partition(closed=25), **killed))["closed"] == "inconclusive"
    assert verdicts(seen(partition(closed=None, clean=True), **killed))["clean"] == "inconclusive"


def test_without_an_opening_there_is_no_pace() -> None:
    assert partitions_per_s(seen(partition(opened=None))) is None


def test_it_goes_into_a_manifest_and_out_again() -> None:
    found = seen(partition(), replace(partition(1, closed=None), clean=None), killed_us=ASKED_US)
    assert decode(HandoverRecord, encode(found), "test") == found
