"""The verdict on the live records, by what the audit of one producer found."""

from dataclasses import replace

import pytest

from results.contract.document import decode, encode
from results.contract.live_load import LiveAudit, LiveDeliveries, LiveLoad
from results.criteria import judge
from results.criteria.catalogue.live_records import judge_live_records
from tests.results.relocated import STREAMS, relocated

SOUND = LiveAudit("producer-1", acked=9, found=9, lost=0, duplicated=0, reordered=0, corrupt=0, exactly_once=True)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "pass"),
        ({"duplicated": 1}, "fail"),
        ({"reordered": 1}, "fail"),
        ({"duplicated": 2, "reordered": 1, "exactly_once": False}, "pass"),
        ({"lost": 1, "found": 8}, "fail"),
        ({"found": 8}, "fail"),
        ({"corrupt": 1}, "fail"),
        ({"acked": 0, "found": 0}, "inconclusive"),
        ({"acked": 0, "found": 0, "corrupt": 1}, "fail"),
        ({"duplicated": 2, "reordered": 1, "sent_again": 3}, "inconclusive"),
        ({"duplicated": 2, "reordered": 1, "sent_again": 2}, "fail"),
        ({"duplicated": 2, "sent_again": 2, "lost": 1, "found": 8}, "fail"),
    ],
)
def test_the_verdict_follows_from_the_account(changes, verdict):
    [found] = judge_live_records(LiveLoad((), (replace(SOUND, **changes),)))
    assert found.verdict == verdict


def test_what_a_client_sent_again_has_the_reason_for_its_new_epoch():
    audit = replace(SOUND, duplicated=1, sent_again=1, first=("t-0: 1 of producer-1 twice", "DRAIN: epoch bump: why"))
    [found] = judge_live_records(LiveLoad((), (audit,)))
    assert "new producer epoch" in found.why
    assert found.why.endswith("t-0: 1 of producer-1 twice, DRAIN: epoch bump: why")


DELIVERED = LiveDeliveries("consumer-1", 9, 2, skipped=0, missed=0, repeated=0, corrupt=0, refused=0)


@pytest.mark.parametrize(
    ("changes", "verdict", "observed"),
    [
        ({}, "pass", 0),
        *(({kind: 2}, "fail", 2) for kind in ("skipped", "missed", "repeated", "corrupt", "refused")),
        ({"behind": 3}, "inconclusive", 0),
        ({"behind": 3, "missed": 2}, "fail", 2),
        ({"records": 0}, "inconclusive", None),
        ({"records": 0, "missed": 2}, "fail", 2),
    ],
)
def test_the_verdict_on_what_a_consumer_was_given(changes, verdict, observed):
    delivered = replace(DELIVERED, **changes)
    audited, found = judge_live_records(LiveLoad((), (SOUND,), (delivered,)))
    assert (audited.host, audited.verdict) == ("producer-1", "pass")
    assert (found.name, found.host, found.verdict, found.observed) == ("live-records", "consumer-1", verdict, observed)


def test_a_wrong_delivery_is_named():
    delivered = replace(DELIVERED, skipped=16, first=("t-0: offsets 24 to 39 were skipped",))
    [_audited, found] = judge_live_records(LiveLoad((), (SOUND,), (delivered,)))
    assert found.why == (
        "9 delivered, the values of 2 and the keys, headers and timestamps of 0 checked; "
        "16 offsets skipped, 0 missed, 0 repeated, 0 corrupt, 0 refused: t-0: offsets 24 to 39 were skipped"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"again": 4}, "; 4 came again after a new assignment"),
        ({"older": 0}, " refused"),
    ],
)
def test_what_is_odd_and_no_flaw_is_said(changes, said):
    [_audited, found] = judge_live_records(LiveLoad((), (SOUND,), (replace(DELIVERED, **changes),)))
    assert found.verdict == "pass"
    assert found.why.endswith(said)


@pytest.mark.parametrize(("shared", "verdict", "observed"), [(False, "fail", 4), (True, "pass", 0)])
def test_an_end_that_was_too_low_fails_but_on_shared_storage(shared, verdict, observed):
    live = LiveLoad((), (SOUND,), (replace(DELIVERED, older=4),))
    [_audited, found] = judge_live_records(live, shared=shared)
    assert (found.verdict, found.observed) == (verdict, observed)
    assert found.why.endswith("; 4 were written before the load, although the consumer began at the end of the log")


@pytest.mark.parametrize(("storage", "verdict"), [("disk", "fail"), ("automq", "pass")])
def test_the_storage_of_a_run_decides_whether_an_end_may_be_too_low(make_run, storage, verdict):
    run = make_run()
    manifest = replace(
        run.manifest,
        parameters={**run.manifest.parameters, "storage": storage},
        facts=replace(run.manifest.facts, live=LiveLoad((), (SOUND,), (replace(DELIVERED, older=4),))),
    )
    found = [each for each in judge(manifest, run.samples, run.events).criteria if each.host == "consumer-1"]
    assert [(each.name, each.verdict) for each in found] == [("live-records", verdict)]


def test_what_a_consumer_was_given_is_judged_where_nothing_was_written():
    [found] = judge_live_records(LiveLoad((), (), (DELIVERED,)))
    assert (found.host, found.verdict) == ("consumer-1", "pass")
    [unread] = judge_live_records(LiveLoad((), None))
    assert unread.verdict == "inconclusive"


def test_the_records_of_a_probe_are_judged_in_a_run_without_a_load():
    manifest, *data = relocated(told=STREAMS)
    probe = replace(SOUND, name="handover-probe", lost=1, found=8)
    alone = replace(
        manifest,
        relocation=replace(manifest.relocation, written_bytes_per_s=0.0),
        facts=replace(manifest.facts, live=LiveLoad((), (probe,))),
    )
    found = [each for each in judge(alone, *data).criteria if each.name == "live-records"]
    assert [(each.host, each.verdict) for each in found] == [("handover-probe", "fail")]


def test_a_manifest_of_a_load_that_checked_nothing_is_read():
    document = encode(LiveLoad((), (SOUND,), (DELIVERED,)))
    assert decode(LiveLoad, document, "a load").deliveries == (DELIVERED,)
    for name in ("compared", "older", "again", "behind"):
        del document["deliveries"][0][name]
    assert decode(LiveLoad, document, "a load").deliveries == (DELIVERED,)
    del document["deliveries"]
    assert decode(LiveLoad, document, "a load").deliveries == ()
