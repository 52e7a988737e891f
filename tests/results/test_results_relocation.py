"""What a move without a throttle is measured and judged by, on runs made in memory."""

from dataclasses import replace

import pyarrow as pa
import pytest

from results.contract.handover import HandoverRecord
from results.contract.manifest import Manifest
from results.contract.network import NetworkRecord, ShapingReading
from results.contract.relocation import CommittedOffsets, Membership, Relocation, Sent, Uploads, formula_seconds
from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria import judge
from results.criteria.catalogue.uploaded_remainder import threshold_bytes
from results.criteria.judgement import skipped
from results.criteria.quantities import size
from results.criteria.relocation_measures import copied_bytes, formula
from results.report import render
from results.report.relocation import answer, article, bars
from tests.results.relocated import COLD, PAYLOAD, STREAMS, TIERED, F, Told, progress, relocated, samples
from tests.results.synthetic import us


def judged(told=None, experiment="s3-reassign"):
    return judge(*relocated(told=told, experiment=experiment))


def of(judgement, name):
    return next(each for each in judgement.criteria if each.name == name)


@pytest.mark.parametrize("told", [Told(), TIERED, STREAMS], ids=["disk", "tiered", "automq"])
def test_a_move_as_expected_passes(told):
    judgement = judged(told)
    bad = [(c.name, c.host, c.why) for c in judgement.criteria if c.verdict != "pass"]
    assert [each for each in bad if not each[0].startswith("handover")] == []  # those have tests of their own
    assert judgement.measures.done_s == pytest.approx(told.seconds)


def test_bytes_are_those_between_brokers_without_the_load_and_the_store():
    manifest, samples, events = relocated(told=TIERED)
    measures = judge(manifest, samples, events).measures
    assert copied_bytes(manifest.relocation, measures) == pytest.approx(TIERED.copied, rel=0.01)
    # The store had answered no such request before the move: the first reading counts as well.
    assert {r.operation: r.count for r in measures.relocation.requests}["GetObject"] == pytest.approx(20)


def test_the_formula_is_log_size_over_the_nic_where_that_takes_longest():
    manifest, _samples, _events = relocated(told=TIERED)
    assert formula(manifest, manifest.relocation, whole=True) == pytest.approx(300e6 / PAYLOAD)
    assert formula(manifest, manifest.relocation, whole=False) == pytest.approx(20e6 / PAYLOAD)
    sent = [(Sent("b1", "b3", 1, 100, 100), 100), (Sent("b2", "b3", 1, 50, 50), 50)]
    carries = {("b1", "transmit"): 10.0, ("b2", "transmit"): 10.0, ("b3", "receive"): 10.0}
    assert formula_seconds(sent, carries) == 15.0
    assert formula_seconds(sent, {**carries, ("b3", "receive"): None}) is None


@pytest.mark.parametrize(("seconds", "verdict"), [(5.8, "pass"), (6.0, "fail")])
def test_a_move_in_s3_may_take_its_requests_and_what_lay_on_disks_and_no_more(seconds, verdict):
    # 3 s without data, 10 partitions of 2 requests of 0.1 s, and 20 MB ÷ 23.9 MB/s.
    manifest, *data = relocated(told=replace(TIERED, seconds=seconds))
    assert of(judge(replace(manifest, criteria=("s3-seconds",)), *data), "s3-seconds").verdict == verdict


def with_late_store(told, *, late=0.0, limit="0.1", answer_s=0.01):
    """A run whose store begins to answer this share of reads within `limit`, the others within 0.05 s.

    It answers the agent after `answer_s`.
    """
    manifest, _samples, events = relocated(told=told)
    found = []
    for each in samples(told):
        found.append(each)
        if (each.host, each.metric) == ("s1", "nic.rx.bytes"):
            found.append(Sample(each.ts_us, "s1", "s3.answer.seconds", answer_s))
        if (each.metric, each.label) == ("s3.requests", "GetObject"):
            for le, share in (("0.05", 1.0 - late), (limit, 1.0), ("+Inf", 1.0)):
                value = each.value * share
                found.append(each._replace(metric="s3.ttfb", label=f"GetObject {le}", value=value))
    return manifest, samples_table(found), events


@pytest.mark.parametrize(
    ("store", "verdict"),
    [
        ({}, "fail"),
        ({"late": 1.0}, "fail"),
        ({"late": 0.5, "limit": "0.25"}, "fail"),
        ({"late": 1.0, "limit": "0.25"}, "inconclusive"),
        ({"answer_s": 0.4}, "inconclusive"),
        ({"answer_s": 0.1}, "fail"),
    ],
)
def test_a_store_that_answers_late_is_not_blamed_on_brokers(store, verdict):
    """5.8 s are allowed. 20 requests that waited 0.25 s and 0.4 s each explain 5 s and 8 s more, half of 5 s not."""
    manifest, *data = with_late_store(replace(TIERED, seconds=9.0), **store)
    found = of(judge(replace(manifest, criteria=("s3-seconds",)), *data), "s3-seconds")
    assert (found.verdict, "the object store answered late" in found.why) == (verdict, verdict == "inconclusive")
    assert found.observed == pytest.approx(9.0)


def test_a_late_store_explains_a_move_that_is_slower_than_the_formula():
    slow = replace(TIERED, seconds=13.2)
    for store, verdict in (({}, "fail"), ({"answer_s": 0.4}, "inconclusive")):
        assert of(judge(*with_late_store(slow, **store)), "duration-formula").verdict == verdict
    manifest, *data = with_late_store(TIERED, answer_s=0.4)
    assert of(judge(replace(manifest, criteria=("s3-seconds",)), *data), "s3-seconds").verdict == "pass"


WRONG = {
    "tiered copies the whole log": (replace(TIERED, copied=300e6 * F), "copied-bytes"),
    "disk copies less than the log": (Told(copied=200e6 * F), "copied-bytes"),
    "tiered as slow as the formula": (replace(TIERED, seconds=13.2), "duration-formula"),
    "disk faster than its NIC": (Told(seconds=9.0), "duration-formula"),
    "tiered that reads less than once a partition": (replace(TIERED, gets=9.0), "store-requests"),
    "streams that read nothing": (replace(STREAMS, gets=0.0), "store-requests"),
    "tiered that reads nothing": (replace(TIERED, gets=0.0), "store-requests"),
    "streams that copy": (replace(STREAMS, copied=50e6), "copied-bytes"),
    "a record lost": (Told(lost=1), "live-records"),
    "never done": (Told(done=False), "move-done"),
}


@pytest.mark.parametrize(("told", "name"), WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_fails(told, name):
    assert of(judged(told), name).verdict == "fail"


@pytest.mark.parametrize(
    ("change", "registered", "container", "verdict", "why"),
    [
        ("left", False, False, "pass", "seen"),
        ("left", True, False, "fail", "b3 is still registered"),
        ("left", False, True, "fail", "the container of b3 still exists"),
        ("joined", True, True, "pass", "seen"),
        ("joined", False, True, "fail", "b3 is not registered"),
    ],
)
def test_a_broker_is_registered_once_it_joined_and_gone_once_it_left(change, registered, container, verdict, why):
    manifest, *data = relocated(told=Told(), experiment="scale-in")
    member = Membership("b3", change, us(-8), (), registered=registered, container=container)
    changed = replace(manifest, relocation=replace(manifest.relocation, membership=member))
    found = of(judge(changed, *data), "move-done")
    assert (found.verdict, found.why) == (verdict, why)


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        (CommittedOffsets(8, 12), ["pass"]),
        (CommittedOffsets(8, 12, ("idle-0 has offset 1 of t-0, not 2",)), ["fail"]),
        (CommittedOffsets(8, 12, problem="list committed offsets: NOT_COORDINATOR"), ["inconclusive"]),
        (None, []),
    ],
)
def test_what_groups_had_committed_is_there_after_a_broker_left(offsets, expected):
    manifest, *data = relocated(told=Told(), experiment="scale-in")
    member = Membership("b3", "left", us(-8), (), registered=False, container=False, offsets=offsets)
    changed = replace(manifest, relocation=replace(manifest.relocation, membership=member))
    assert Manifest.from_json(changed.to_json()).relocation == changed.relocation
    found = [each for each in judge(changed, *data).criteria if each.name == "committed-offsets"]
    assert [each.verdict for each in found] == expected
    assert all((offsets.problem or "".join(offsets.wrong)) in each.why for each in found)


@pytest.mark.parametrize(
    ("uploads", "expected"),
    [
        (Uploads(12), ["pass"]),
        (Uploads(12, ("t-0 up to offset 99, and the move ended at 100",)), ["fail"]),
        (Uploads(12, problem="list end offsets: NOT_LEADER_OR_FOLLOWER"), ["inconclusive"]),
        (Uploads(0), []),
        (None, []),
    ],
)
def test_new_leaders_of_tiered_partitions_upload_what_clients_write(uploads, expected):
    manifest, *data = relocated(told=TIERED)
    changed = replace(manifest, relocation=replace(manifest.relocation, uploads=uploads))
    assert Manifest.from_json(changed.to_json()).relocation == changed.relocation
    found = [each for each in judge(changed, *data).criteria if each.name == "new-leader-uploads"]
    assert [each.verdict for each in found] == expected
    assert all((uploads.problem or "".join(uploads.missing)) in each.why for each in found)


def test_a_tiered_log_that_lies_on_disks_is_no_fault_of_the_move():
    """It is so before the move begins: the run is about another thing, and what lay on disks may be copied."""
    much = judged(replace(TIERED, local=31_000_000, copied=31e6 * F))
    found = of(much, "tiered-local-fraction")
    assert (found.verdict, much.verdict) == ("inconclusive", "inconclusive")
    assert found.why == "31 MB of 300 MB on the leaders' disks: the disk is measured, not tiered storage"
    whole = replace(TIERED, local=295_000_000, copied=295e6 * F, seconds=13.2)
    assert of(judged(whole), "duration-formula").verdict == "inconclusive"
    # 240 MB ÷ NIC and ten partitions' requests may take 15 s in all (`s3-seconds`), the whole log ÷ NIC 12.5 s.
    most = replace(TIERED, local=240_000_000, copied=240e6 * F, seconds=14.5)
    assert of(judged(most), "duration-formula").verdict == "inconclusive"
    half = replace(TIERED, local=150_000_000, copied=150e6 * F, seconds=13.2)
    assert of(judged(half), "duration-formula").verdict == "fail"


def test_a_log_so_small_that_a_healthy_move_may_take_as_long_as_the_formula_says_nothing():
    """10 partitions may take 5 s (`s3-seconds`), and 50 MB ÷ NIC are 2.1 s."""
    small = replace(STREAMS, total=50_000_000, seconds=2.5)
    assert of(judged(small), "duration-formula").verdict == "inconclusive"
    assert of(judged(replace(small, seconds=2.0)), "duration-formula").verdict == "pass"
    # 5 s and 1.1 × what lay on disks are the most: a healthy move does not take longer.
    assert of(judged(replace(small, seconds=12.0)), "duration-formula").verdict == "fail"


def test_bytes_of_another_tenant_on_the_nic_are_not_kafkas():
    """Its traffic makes the NIC carry less when it is measured; a busy machine alone excuses no copy."""
    manifest, *data = relocated(told=Told(copied=450e6 * F))
    assert of(judge(manifest, *data), "copied-bytes").verdict == "fail"
    shared = tuple(replace(nic, ratio=0.89, readings=(0.89, 0.88, 0.89)) for nic in manifest.nics)
    found = of(judge(replace(manifest, nics=shared), *data), "copied-bytes")
    assert found.verdict == "inconclusive" and "nic-measured" in found.why
    busy, *samples = relocated(told=Told(copied=450e6 * F, busy=0.97))
    judgement = judge(busy, *samples)
    assert of(judgement, "machine-load").verdict == "inconclusive"
    assert of(judgement, "copied-bytes").verdict == "fail"


def remainder(told, **changes):
    """The criterion's finding; `changes` are of the declared Kafka of both brokers."""
    return remainder_of(*relocated(told=told), **changes)


def remainder_of(manifest, *data, **changes):
    """The same of a run."""
    document = {**manifest.topology.document, "hosts": {host: {"kafka": changes} for host in ("b1", "b2")}}
    topology = replace(manifest.topology, document=document)
    name = "uploaded-remainder"
    return of(judge(replace(manifest, topology=topology, criteria=(name,)), *data), name)


# 2 × 29.8 MB of a log with a heap of 512 MiB, and 2 × 1 MB/s × 19.3 s, × 1.05 of the wire, + 3 %: 106 MB.
@pytest.mark.parametrize(
    ("uploaded", "verdict"),
    [(0.0, "pass"), (60e6, "pass"), (90e6, "fail"), (300e6 * F, "fail")],
    ids=["nothing", "the log's rest", "more than that", "everything again"],
)
def test_an_old_broker_uploads_what_its_log_had_left_and_not_the_partitions(uploaded, verdict):
    found = remainder(replace(STREAMS, uploaded=uploaded))
    assert found.verdict == verdict
    assert (found.power is not None) == (verdict == "pass")


def test_an_upload_that_ends_after_the_move_counts():
    assert STREAMS.seconds < 10.0  # the upload lasts ten
    assert remainder(replace(STREAMS, uploaded=200e6)).observed > 200e6


def test_a_bound_that_a_second_upload_would_hardly_exceed_says_nothing():
    assert remainder(replace(STREAMS, total=150_000_000)).verdict == "inconclusive"
    assert remainder(STREAMS, jvm={"heap": "4GiB"}).verdict == "inconclusive"
    assert remainder(replace(STREAMS, uploaded=600e6), jvm={"heap": "4GiB"}).verdict == "fail"


@pytest.mark.parametrize(
    ("told", "changes"),
    [
        (replace(STREAMS, f=None), {}),
        (replace(STREAMS, gap=(3.0, 8.0)), {}),
        (STREAMS, {"properties": {"s3.wal.upload.threshold": "much"}}),
    ],
    ids=["no overhead of the wire", "the store's NIC not read", "no threshold"],
)
def test_an_upload_of_which_a_part_is_not_known_is_left_open(told, changes):
    assert remainder(told, **changes).verdict == "inconclusive"


def test_a_killed_broker_uploads_nothing_that_could_be_judged():
    manifest, *data = relocated(told=STREAMS)
    seen = HandoverRecord("automq", 0, (), killed_us=1)
    killed = replace(manifest, facts=replace(manifest.facts, handover=seen), criteria=("uploaded-remainder",))
    assert "uploaded-remainder" not in {each.name for each in judge(killed, *data).criteria}


@pytest.mark.parametrize(
    ("kafka", "threshold"),
    [
        ({}, 512 * 2**20 / 18),
        ({"jvm": {"heap": "1GiB"}}, 2**30 / 18),
        ({"jvm": {"heap": "1.5GB"}}, 1.5e9 / 18),
        ({"jvm": {"heap": "16GiB"}}, 500 * 2**20),
        ({"properties": {"s3.wal.cache.size": "90000000"}, "jvm": {"heap": "1GiB"}}, 30e6),
        ({"properties": {"s3.wal.upload.threshold": "5000000"}}, 5e6),
        ({"properties": {"s3.wal.upload.threshold": "0"}}, None),
        ({"properties": {"s3.stream.allocator.policy": "UNPOOLED_HEAP"}}, 512 * 2**20 / 18),
        ({"properties": {"s3.stream.allocator.policy": "POOLED_DIRECT"}, "jvm": {"heap": "1GiB"}}, None),
        ({"jvm": {"heap": "as much as there is"}}, None),
    ],
)
def test_a_log_is_uploaded_when_a_block_is_full(kafka, threshold):
    assert threshold_bytes(kafka) == pytest.approx(threshold)


def test_one_object_of_shared_storage_serves_many_partitions():
    assert of(judged(replace(STREAMS, gets=1.0)), "store-requests").verdict == "pass"


def test_reads_of_the_store_are_not_judged_of_a_log_on_disk():
    """It needs none, so the criterion could not fail."""
    assert "store-requests" not in {each.name for each in judged(Told()).criteria}


def test_less_than_the_load_took_before_hides_no_copy_where_all_that_came_is_little():
    manifest, *data = relocated(told=replace(STREAMS, copied=-1.5e6))
    found = of(judge(manifest, *data), "copied-bytes")
    assert (found.verdict, "the load's are among them" in found.why) == ("pass", True)
    # Before the move came more than clients write. As much during it may be a copy.
    manifest, *data = relocated(told=replace(STREAMS, copied=-0.2e6))
    little = replace(manifest, relocation=replace(manifest.relocation, written_bytes_per_s=1e3))
    assert of(judge(little, *data), "copied-bytes").verdict == "inconclusive"


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        (replace(STREAMS, copied=60e3), "pass"),
        (replace(STREAMS, copied=-40e3), "pass"),
        (replace(STREAMS, copied=200e3), "fail"),
        (replace(STREAMS, copied=60e3, total=100_000), "inconclusive"),
    ],
    ids=["requests", "fewer requests than before", "more than requests", "a log as small as requests"],
)
def test_without_a_load_brokers_exchange_requests_and_no_copies(told, verdict):
    # Two brokers receive 15 kB/s, 1 kB/s of each other and 300 B/s of each of ten partitions, for 2.97 s: 113 kB.
    manifest, *data = relocated(told=told)
    idle = replace(manifest, relocation=replace(manifest.relocation, written_bytes_per_s=0.0))
    assert of(judge(idle, *data), "copied-bytes").verdict == verdict


def of_two_servers(told, between):
    """A run whose store has two servers, of which one serves all requests; `between` NIC bytes go to the other one."""
    manifest, _samples, events = relocated(told=told)
    nics = (*manifest.nics, *(replace(nic, host="s2") for nic in manifest.nics if nic.host == "s1"))
    found = []
    for each in samples(told):
        metric = each.metric.replace("nic.", "s3.")
        if each.host == "s1" and metric != each.metric:
            more = between * progress(told, (each.ts_us - us(0)) / 1e6)
            of_clients = each._replace(metric=metric, label=None)
            found += [of_clients, of_clients._replace(host="s2", value=0.0)]
            found += [each._replace(value=each.value + more), each._replace(host="s2", value=more)]
        else:
            found.append(each)
    asked = replace(manifest.relocation, stores=("s1", "s2"))
    return replace(manifest, nics=nics, relocation=asked), samples_table(found), events


def test_what_servers_of_one_store_send_each_other_is_neither_uploaded_nor_read_nor_hides_a_copy():
    assert remainder_of(*of_two_servers(STREAMS, 200e6)).verdict == "pass"
    cold = replace(TIERED, cold=replace(COLD, source="store"), from_store=150e6)
    run = of_two_servers(cold, 290e6)
    assert of(judge(replace(run[0], criteria=("cold-read",)), *run[1:]), "cold-read").verdict == "inconclusive"
    manifest, *data = of_two_servers(replace(TIERED, copied=300e6 * F), 300e6 * F)
    assert of(judge(manifest, *data), "copied-bytes").verdict == "fail"


def test_a_server_of_the_store_that_got_no_request_was_asked_for_its_counters():
    """Clients send all requests to the first server. Another one counts bytes, and names no operation."""
    manifest, *data = of_two_servers(TIERED, 0.0)
    found = of(judge(manifest, *data), "store-requests")
    assert (found.verdict, found.observed) == ("pass", pytest.approx(20))


def with_other_client(told, *, received=0.0, sent=0.0, first_s=0.0, seen=True):
    """A run whose store has another client: what the store receives from it, and sends to it, in ten seconds."""
    manifest, _samples, events = relocated(told=told)
    found = []
    for each in samples(told):
        part = min(1.0, max(0.0, ((each.ts_us - us(0)) / 1e6 - first_s) / 10.0))
        more = {"nic.rx.bytes": received, "nic.tx.bytes": sent}.get(each.metric, 0.0) if each.host == "s1" else 0.0
        found.append(each._replace(value=each.value + more * part))
        if seen and (each.host, each.metric) == ("s1", "nic.rx.bytes"):
            found.append(Sample(each.ts_us, "s1", "s3.others.bytes", (received + sent) * part, label=OTHER))
    network = NetworkRecord((ShapingReading("2026-11-21T18:15:08.000+00:00", "before"),))
    return replace(manifest, network=network), samples_table(found), events


OTHER = "198.19.0.1 port 41234"
COLD_STORE = replace(TIERED, cold=replace(COLD, source="store"))
SHARED = {
    "a copy that what the store sent hides": (replace(TIERED, copied=300e6 * F), {"sent": 1.03e9}, "copied-bytes"),
    "a cache": (COLD_STORE, {"sent": 600e6}, "cold-read"),
    "too few reads": (TIERED, {"sent": 60e6}, "store-requests"),
}


@pytest.mark.parametrize(("told", "client", "name"), SHARED.values(), ids=list(SHARED))
def test_what_the_store_sent_to_other_clients_lets_nothing_pass(told, client, name):
    manifest, *data = with_other_client(told, **client, seen=False)
    assert of(judge(replace(manifest, criteria=(name,)), *data), name).verdict == "pass"
    manifest, *data = with_other_client(told, **client)
    judgement = judge(replace(manifest, criteria=(name,)), *data)
    found, first = of(judgement, name), "not judged: nic-unchanged (s1): s1: other clients of the object store"
    assert found.verdict == judgement.verdict == "inconclusive"
    assert found.why.startswith(f"{first} exchanged {size(client['sent'])} with it, {OTHER} the most")


def test_what_the_store_received_from_other_clients_is_not_taken_for_an_upload():
    assert remainder_of(*with_other_client(STREAMS, received=300e6, seen=False)).verdict == "fail"
    found = remainder_of(*with_other_client(STREAMS, received=300e6))
    assert found.verdict == "inconclusive" and f"exchanged 300 MB with it, {OTHER} the most" in found.why


def test_other_clients_of_the_store_excuse_nothing_that_they_do_not_explain():
    few = replace(TIERED, gets=9.0)
    assert of(judge(*with_other_client(few, sent=60e6)), "store-requests").verdict == "fail"
    device = Told(cold=COLD, device=590e6)
    manifest, *data = with_other_client(device, sent=60e6)
    assert of(judge(replace(manifest, criteria=("cold-read",)), *data), "cold-read").verdict == "pass"


@pytest.mark.parametrize("client", [{"sent": 100e3}, {"sent": 600e6, "first_s": -40.0}], ids=["little", "before"])
def test_some_requests_of_another_client_and_what_it_did_before_are_nothing(client):
    judgement = judge(*with_other_client(TIERED, **client))
    names = ("nic-unchanged", "store-requests", "copied-bytes")
    assert {each.verdict for each in judgement.criteria if each.name in names} == {"pass"}


@pytest.mark.parametrize(("at_s", "verdict"), [(-3.0, "pass"), (1.0, "inconclusive")])
def test_a_store_that_was_started_again_before_the_move_is_counted_and_one_during_it_is_not(at_s, verdict):
    """A server names no operation that it has not had since its start, and has lost what it counted before."""
    manifest, _samples, events = relocated(told=TIERED)
    found = []
    for each in samples(TIERED):
        if each.metric == "s3.requests" and each.label == "PutObject":
            begun = each.ts_us < us(at_s)
            found.append(each if begun else each._replace(value=1.0))
            found += [each._replace(label="MakeBucket", value=3.0)] if begun else []
        else:
            found.append(each)
    assert of(judge(manifest, samples_table(found), events), "store-requests").verdict == verdict


OPEN = {
    "no overhead of the wire": (Told(f=None), "copied-bytes"),
    "the leaders' disks not seen": (Told(local=None), "copied-bytes"),
    "NICs not read for a while": (Told(gap=(3.0, 8.0)), "copied-bytes"),
    "something slower than the NIC": (Told(seconds=30.0), "duration-formula"),
    "a busy machine": (Told(busy=0.95), "duration-formula"),
    "a store that is not asked": (replace(TIERED, counted=False), "store-requests"),
    "never done": (Told(done=False), "duration-formula"),
}


@pytest.mark.parametrize(("told", "name"), OPEN.values(), ids=list(OPEN))
def test_what_cannot_be_said_is_left_open(told, name):
    assert of(judged(told), name).verdict == "inconclusive"


def test_when_acknowledgements_are_as_quick_as_before():
    judgement = judged(Told(slow_until=4.0), "scale-out")
    # One slow second (5 of 500 records) is just 1 %: the last 5 s with two of them end 3 s after the last one.
    assert of(judgement, "p99-recovery").observed == 7.0
    assert of(judgement, "p99-recovery").verdict == "pass"
    assert judgement.measures.relocation.longest_ack_us == 900_000
    assert of(judged(Told(slow_until=99.0), "scale-out"), "p99-recovery").verdict == "inconclusive"
    assert of(judged(Told(slow_until=0.0), "scale-out"), "p99-recovery").observed == 0.0


def test_without_a_load_no_acknowledgement_is_judged():
    manifest, *data = relocated(told=Told(), experiment="scale-out")
    idle = replace(manifest, relocation=replace(manifest.relocation, written_bytes_per_s=0.0))
    assert "p99-recovery" not in {each.name for each in judge(idle, *data).criteria}
    assert [each.why for each in skipped(idle) if each.name == "p99-recovery"] == [
        "no client wrote, so no acknowledgement was late"
    ]
    assert not [each for each in skipped(manifest) if each.name == "p99-recovery"]


def test_acknowledgements_that_stay_slow_fail_where_the_load_was_watched_for_long_enough(monkeypatch):
    monkeypatch.setattr("tests.results.relocated.BEFORE_S", 25)
    monkeypatch.setattr("tests.results.relocated.AFTER_S", 25)
    never = of(judged(Told(slow_until=99.0), "scale-out"), "p99-recovery")
    assert (never.verdict, never.observed) == ("fail", None)
    assert "in every 5 s of the 20 s after the move" in never.why
    # As before from the 24th second after the move's end on, which is too late; from the 12th on is in time.
    monkeypatch.setattr("tests.results.relocated.AFTER_S", 40)
    end = Told().seconds
    assert of(judged(Told(slow_until=end + 24.0), "scale-out"), "p99-recovery").verdict == "fail"
    assert of(judged(Told(slow_until=end + 12.0), "scale-out"), "p99-recovery").verdict == "pass"
    assert of(judged(Told(slow_until=4.0), "scale-out"), "p99-recovery").verdict == "pass"


@pytest.mark.parametrize(("closing", "verdict"), [(False, "inconclusive"), (True, "pass")])
def test_latencies_while_leaders_close_their_segments_say_nothing_about_the_move(closing, verdict):
    manifest, _samples, events = relocated(told=Told(), experiment="scale-out")
    asked_us = us(Told().seconds + 5.0)
    early = [each for each in samples(Told()) if each.ts_us < asked_us]
    late = [each for each in samples(Told(slow_until=99.0)) if each.ts_us >= asked_us]
    if closing:
        events = pa.concat_tables([events, events_table([Event(asked_us, "uploads.asked", "segments")])])
    assert of(judge(manifest, samples_table(early + late), events), "p99-recovery").verdict == verdict


@pytest.mark.parametrize(("slow_us", "verdict", "seconds"), [(4479, "pass", 0.0), (4607, "inconclusive", None)])
def test_within_a_tenth_of_before_is_as_quick_as_before(slow_us, verdict, seconds):
    back = of(judged(Told(slow_until=99.0, slow_us=slow_us), "scale-out"), "p99-recovery")
    assert (back.verdict, back.observed) == (verdict, seconds)


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        (Told(cold=COLD, device=590e6), "pass"),
        (Told(cold=COLD, device=500e6), "inconclusive"),
        (Told(cold=COLD, device=None), "inconclusive"),
        (Told(cold=replace(COLD, evicted_bytes=None), device=590e6), "inconclusive"),
        (Told(cold=replace(COLD, consumed_bytes=0), device=590e6), "inconclusive"),
        (Told(cold=None), "inconclusive"),
        (replace(TIERED, cold=replace(COLD, source="store"), from_store=290e6), "pass"),
        (replace(TIERED, cold=replace(COLD, source="store")), "inconclusive"),
    ],
)
def test_a_cold_read_is_one_that_came_from_the_device_or_the_store(told, verdict):
    assert of(judged(told, "cold-read"), "cold-read").verdict == verdict


def test_the_report_says_what_storage_it_was_and_never_calls_tiered_automq():
    for told, words in ((TIERED, "tiered storage (KIP-405)"), (Told(), "logs on disk"), (STREAMS, "AutoMQ")):
        manifest, samples, events = relocated(told=told)
        judgement = judge(manifest, samples, events)
        page = render(manifest, samples, events, judgement.criteria, judgement.measures)
        assert words in page
        assert ("AutoMQ" in page) == (told is STREAMS)
        assert "log size ÷ NIC" in page


@pytest.mark.parametrize("told", [Told(), TIERED], ids=["disk", "tiered"])
def test_each_bar_is_as_long_as_the_seconds_that_the_table_gives(told):
    manifest, samples, events = relocated(told=told)
    measures = judge(manifest, samples, events).measures
    drawn, table = bars(manifest, manifest.relocation, measures), dict(article(manifest, manifest.relocation, measures))
    named = {"observed": "Seconds", "formula": "Log size ÷ NIC", "local": "What lay on disk ÷ NIC"}
    longest = max(drawn, key=lambda bar: bar.width)
    for bar in drawn:
        assert bar.text == table[named[bar.kind]]
        seconds, most = (float(text.removesuffix(" s")) for text in (bar.text, longest.text))
        assert bar.width / longest.width == pytest.approx(seconds / most, abs=0.02)


def test_the_report_has_the_cores_that_the_move_took():
    """The price of a move in an object store is CPU as well, and no row had it."""
    manifest, samples, events = relocated(told=TIERED)
    measures = judge(manifest, samples, events).measures
    cores = manifest.machine.cores
    found = dict(article(manifest, manifest.relocation, measures))["Cores busy during the move"]
    assert found == f"{TIERED.busy * cores:.1f} of {cores}"


def test_the_answer_names_what_failed_before_what_was_not_judged():
    manifest, samples, events = relocated(told=TIERED)
    judgement = judge(manifest, samples, events)
    first, second, *rest = judgement.criteria
    open_, failed = replace(first, verdict="inconclusive"), replace(second, verdict="fail")
    said = answer([open_, failed, *rest], manifest.relocation, judgement.measures)
    assert f"that did not pass: {failed.name}, {failed.why}." in said


def test_the_manifest_keeps_it():
    manifest, _samples, _events = relocated(told=replace(TIERED, cold=COLD))
    assert Manifest.from_json(manifest.to_json()).relocation == manifest.relocation


def test_a_record_that_contradicts_itself_is_refused():
    with pytest.raises(ValueError, match="'b9'"):
        Relocation("disk", ("b1", "b2"), (), (Sent("b1", "b9", 1, 1, 1),), 1.0, 0.0)
    with pytest.raises(ValueError, match="disk, tiered, automq"):
        Relocation("s3", ("b1", "b2"), (), (), 1.0, 0.0)
