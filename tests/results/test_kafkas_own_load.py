"""What keeps a machine busy, or its disk: only what comes from others than brokers excuses a run."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.contract.manifest import Done
from results.contract.schema import Sample, samples_table
from results.criteria import judge
from results.criteria.judgement import by_machine, noisy, sound
from tests.results.judged import named
from tests.results.synthetic import us
from tests.results.test_jvm_pauses import with_jvm

CORES = 2


def with_load(run, busy, kafka, *, steal=0.0, more=()):
    """The judgement of a run on two busy cores, of which brokers used this share; None: no reading says it."""
    others = run.samples.filter(pc.invert(pc.is_in(run.samples["metric"], pa.array(["cpu.busy", "cpu.steal"]))))
    load = [Sample(us(t), "machine", "cpu.busy", busy) for t in range(-10, 120)]
    load += [Sample(us(t), "machine", "cpu.steal", steal) for t in range(-10, 120)]
    load += [
        Sample(us(t), host, "jvm.cpu.seconds", 10.0 + kafka * CORES / 2 * (t + 10))
        for host in ("b1", "b2")
        for t in range(-10, 120)
        if kafka is not None
    ]
    load += more
    manifest = replace(run.manifest, machine=replace(run.manifest.machine, cores=CORES))
    return judge(manifest, pa.concat_tables([others, samples_table(load)]), run.events)


@pytest.mark.parametrize(
    ("busy", "kafka", "steal", "measured"),
    [
        (0.97, 0.90, 0.0, True),
        (0.90, 0.77, 0.0, True),
        (0.97, 0.80, 0.0, False),
        (0.97, 0.90, 0.06, False),
        (0.97, None, 0.0, False),
        (0.70, 0.65, 0.06, False),
    ],
)
def test_a_machine_that_kafka_alone_kept_busy_was_not_disturbed(make_run, busy, kafka, steal, measured):
    judgement = with_load(make_run(), busy, kafka, steal=steal)
    assert judgement.verdict == "inconclusive"
    assert (sound(judgement), noisy(judgement)) == (measured, not measured)
    assert by_machine(judgement)  # a suite repeats it
    [load] = named(judgement, "machine-load")
    assert ("Kafka did it, all others used at most" in load.why) is measured


def test_a_broker_that_was_held_back_meanwhile_was_disturbed(make_run):
    stopped = [Sample(us(t), "b2", "jvm.stopped", float(20 < t < 24)) for t in range(-10, 120)]
    judgement = with_load(make_run(), 0.97, 0.90, more=stopped)
    assert (sound(judgement), noisy(judgement)) == (False, True)


@pytest.mark.parametrize("document", [{"hosts": {"b1": {"ssh": {}}}}, {"hosts": {"b1": {}}, "machines": {"m": {}}}])
def test_of_several_machines_it_is_not_known_which_one_kafka_kept_busy(make_run, document):
    run = make_run()
    topology = replace(run.manifest.topology, document=document)
    several = replace(run, manifest=replace(run.manifest, topology=topology))
    judgement = with_load(several, 0.97, 0.90)
    assert (sound(judgement), noisy(judgement)) == (False, True)
    for readings in ([*SLOW_DISK, *written(3.0)], [*SMALL_MACHINE, *taken(1.0)]):
        assert noisy(under(several, readings))


def test_a_load_that_breaks_nothing_leaves_the_run_as_it_was(make_run):
    judgement = with_load(make_run(), 0.8, 0.7)
    assert judgement.verdict == "pass"
    assert not sound(judgement) and not noisy(judgement)


# ---- a disk and memory: moves of 580 MB at 10 MB/s to b2, of which every task waited for 4 s

GIB = 1024**3
RATES = ("steady-mean", "duration-model")


def counted(metric, host, value, until=120):
    return [Sample(us(t), host, metric, float(value(t))) for t in range(-10, until)]


DISK = counted("pressure.io", "machine", lambda t: 40 + 4.0 * (t > 20))
MEMORY = counted("pressure.memory", "machine", lambda t: 40 + 4.0 * (t > 20))
SLOW_DISK = [
    *DISK,
    *counted("broker.metadata_offset", "b2", lambda t: 500 + 2 * t),
    *counted("io.write_bytes", "b1", lambda t: 1e9 + 2e4 * t),
]
SMALL_MACHINE = [
    *MEMORY,
    *counted("memory.available", "machine", lambda t: 2 * GIB - GIB * (t > 20)),
    *counted("jvm.old.max", "b2", lambda _t: 0.5 * GIB),
]


def written(times, more=2e5):
    return counted("io.write_bytes", "b2", lambda t: 1e9 + (10e6 * times + more) * max(0, t))


def flushed(per_s):
    return counted("broker.log_flushes", "b2", lambda t: 100 + per_s * (t + 10))


def taken(gib):
    return counted("jvm.memory.bytes", "b2", lambda t: 0.9 * GIB + gib * GIB * (t > 20))


def under(run, readings):
    return judge(run.manifest, pa.concat_tables([run.samples, samples_table(readings)]), run.events)


@pytest.mark.parametrize(
    ("readings", "name", "own"),
    [
        ([*SLOW_DISK, *written(1.0), *flushed(2)], "disk-pressure", ""),
        ([*SLOW_DISK, *written(1.5)], "disk-pressure", ""),
        ([*SLOW_DISK, *written(3.0)], "disk-pressure", "b2 wrote"),
        ([*SLOW_DISK, *written(1.0), *flushed(6)], "disk-pressure", ""),
        ([*SLOW_DISK, *written(1.0), *flushed(40)], "disk-pressure", "b2 flushed"),
        (SLOW_DISK, "disk-pressure", ""),
        ([*SMALL_MACHINE, *taken(0.3)], "memory-pressure", ""),
        ([*SMALL_MACHINE, *taken(0.7)], "memory-pressure", ""),
        ([*SMALL_MACHINE, *taken(1.0)], "memory-pressure", "brokers took"),
        (SMALL_MACHINE, "memory-pressure", ""),
    ],
)
def test_what_brokers_do_to_a_disk_and_to_memory_excuses_nothing(make_run, readings, name, own):
    healthy = under(make_run(), readings)
    [found] = named(healthy, name)
    assert (found.verdict, healthy.verdict) == ("inconclusive", "inconclusive")
    assert ("it explains no failure" in found.why, own in found.why) == (bool(own), True)
    assert (sound(healthy), noisy(healthy)) == (bool(own), not own)
    late = under(make_run(real_quota=8.5e6), readings)
    expected = "fail" if own else "inconclusive"
    assert {each.verdict for rate in RATES for each in named(late, rate)} == {expected}


def test_a_broker_that_fills_its_own_disk_does_not_excuse_a_late_move(make_run):
    run = make_run()
    facts = replace(run.manifest.facts, done=Done(False, "still being reassigned", 50.0))
    events = run.events.filter(pc.not_equal(run.events["kind"], "move.done"))
    samples = run.samples.filter(pc.less_equal(pc.cast(run.samples["ts"], pa.int64()), us(50)))
    late = replace(run, manifest=replace(run.manifest, facts=facts), events=events, samples=samples)
    assert named(under(late, [*SLOW_DISK, *written(1.0)]), "move-done")[0].verdict == "inconclusive"
    assert named(under(late, [*SLOW_DISK, *written(3.0)]), "move-done")[0].verdict == "fail"


def test_logs_of_shared_storage_say_nothing_of_what_is_written(make_run):
    run = make_run()
    manifest = replace(run.manifest, parameters={**run.manifest.parameters, "storage": "tiered"})
    [found] = named(under(replace(run, manifest=manifest), [*SLOW_DISK, *written(3.0)]), "disk-pressure")
    assert "explains no failure" not in found.why


@pytest.mark.parametrize(("partitions", "own"), [(100, True), (4000, False)])
def test_a_page_of_each_log_may_be_written_again_each_second(make_run, partitions, own):
    run = make_run()
    logs = [Sample(us(t), "b2", "log.bytes", 1e6, "idle", p) for t in (-10, 119) for p in range(partitions)]
    [found] = named(under(run, [*SLOW_DISK, *written(3.0), *logs]), "disk-pressure")
    assert ("it explains no failure" in found.why) is own


@pytest.mark.parametrize(
    ("properties", "own"),
    [
        ({}, True),
        ({"log.segment.bytes": "268435456"}, True),
        ({"log.segment.bytes": "1048576"}, False),
        ({"log.flush.interval.messages": "1"}, False),
        ({"log.roll.ms": "1000"}, False),
    ],
)
def test_flushes_that_the_topology_asks_for_are_not_brokers_own(make_run, properties, own):
    run = make_run()
    hosts = {host: {"kafka": {"properties": properties}} for host in ("b1", "b2")}
    manifest = replace(run.manifest, topology=replace(run.manifest.topology, document={"hosts": hosts}))
    rolls = flushed(2 + 580 / 50)  # 580 MB in 1 MiB each, within 55 s, and the metadata
    [found] = named(under(replace(run, manifest=manifest), [*SLOW_DISK, *written(1.0), *rolls]), "disk-pressure")
    assert ("it explains no failure" in found.why) is own


@pytest.mark.parametrize(("steal", "measured"), [(0.004, True), (0.06, False)])
def test_brokers_that_stand_still_are_measured_all_the_same_unless_cpu_was_stolen(make_run, steal, measured):
    still = with_jvm(make_run(steal=steal), lambda t: 0.3 * t, lambda t: t // 2 + 3)
    judgement = still.judged()
    assert named(judgement, "steady-mean")[0].verdict == "inconclusive"
    assert sound(judgement) is measured
    gap = replace(still, samples=still.samples.filter(pc.not_equal(still.samples["host"], "b2")))
    assert not sound(judge(gap.manifest, gap.samples, gap.events))
