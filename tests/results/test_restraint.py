"""A broker that somebody stops, pauses or limits leaves rates open, with the cause; no declared limit does."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.contract.clocks import ClockReading
from results.contract.logs import HostLog, LogFinding, ProcessEnd
from results.contract.manifest import Differences, Done
from results.contract.relocation import Membership, Uploads
from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria.judgement import judge, noisy
from results.criteria.restraint import held_since_us
from results.criteria.run_view import RunView
from tests.results.judged import named, verdicts
from tests.results.relocated import TIERED, Told, relocated, samples
from tests.results.synthetic import us
from tests.results.test_kafkas_own_load import GIB, SMALL_MACHINE, counted, taken

RATES = ("steady-mean", "duration-model", "nic-conservation", "broker-rate-agrees")
HEALTHY = {
    "jvm.stopped": 0.0,
    "agent.late": 0.002,
    "cpu.throttled.seconds": 4.0,
    "jvm.cpus": 2.0,
    "disk.free.bytes": 9e9,
    "memory.limited": 3.0,
    "memory.killed": 2.0,
    "disk.limited": 0.0,
}


def held(run, host="b2", **changed):
    """Add what agents read; `changed` has functions of the time for one host, by the metric without its dots."""
    rows = []
    for each in ("b1", "b2"):
        for t in range(-5, 65):
            for metric, value in HEALTHY.items():
                own = changed.get(metric.replace(".", "_")) if each == host else None
                rows.append(Sample(us(t), each, metric, float(own(t) if own else value)))
    return replace(run, samples=pa.concat_tables([run.samples, samples_table(rows)]))


def found(judgement):
    return {c.host: c for c in named(judgement, "brokers-unrestrained")}


def test_brokers_that_nothing_holds_back_pass(make_run):
    judgement = held(make_run()).judged()
    assert judgement.verdict == "pass"
    assert {host: c.verdict for host, c in found(judgement).items()} == {None: "pass"}


def test_a_run_of_before_these_readings_has_no_finding(make_run):
    assert found(make_run().judged()) == {}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (
            {"jvm_stopped": lambda t: 20 <= t < 23},
            "b2: a signal had stopped its process (SIGSTOP) in 3 readings, first at +20.0 s",
        ),
        (
            {"agent_late": lambda t: 3.4 if t == 23 else 0.001},
            "b2: its agent was 3.4 s late at +23.0 s: its container was paused, or had no CPU",
        ),
        (
            {"cpu_throttled_seconds": lambda t: 4.0 + 0.2 * min(max(t - 20, 0), 20)},
            "b2: a CPU limit that the topology does not declare held it back for 12.1 % of 33 s",
        ),
        (
            {"jvm_cpus": lambda t: 1 if 20 <= t < 30 else 2},
            "b2: its process might use 1 of 2 CPUs for a time: another program changed its CPU set",
        ),
        (
            {"disk_free_bytes": lambda t: 4096 if t >= 20 else 9e9},
            "b2: its disk was full, 4.096 kB free, first at +20.0 s, and brokers had not filled it",
        ),
        (
            {"memory_limited": lambda t: 3 + 20 * (t > 20)},
            "b2: its processes reached a limit of memory 20 times, and the topology declares none",
        ),
        (
            {"disk_limited": lambda t: 20 <= t < 25},
            "b2: the rate of its disk was limited, first at +20.0 s, and the topology declares no limit",
        ),
    ],
    ids=["stopped", "paused", "limited", "CPU set", "full", "memory", "disk"],
)
def test_a_broker_that_is_held_back_leaves_rates_open_by_name(make_run, changed, why):
    judgement = held(make_run(nic_counter_factor=1.2), **changed).judged()
    assert found(judgement)["b2"].why == why
    assert [name.replace(".", "_") for name in found(judgement)["b2"].series] == list(changed)
    assert {c.label: c.why for c in judgement.criteria if c.verdict == "fail"} == {}
    assert verdicts(judgement, *RATES) == {"inconclusive"}
    assert noisy(judgement), "a night blames the machine"


def test_the_same_rate_without_a_restraint_fails(make_run):
    assert held(make_run(nic_counter_factor=1.2)).judged().verdict == "fail"


def test_a_moment_is_within_what_a_rate_may_lack(make_run):
    run = held(
        make_run(),
        agent_late=lambda t: 0.9 if t == 20 else 0.0,
        cpu_throttled_seconds=lambda t: 4.0 + 1.5 * (t > 20),
    )
    assert run.judged().verdict == "pass"


def test_a_limit_that_the_topology_declares_excuses_nothing(make_run):
    run = held(make_run(nic_counter_factor=1.2), cpu_throttled_seconds=lambda t: 4.0 + 0.5 * (t + 5))
    topology = run.manifest.topology
    document = {**topology.document, "hosts": {"b2": {"cpus": 0.5}}}
    limited = replace(run, manifest=replace(run.manifest, topology=replace(topology, document=document)))
    assert "b2" in found(run.judged()) and "b2" not in found(limited.judged())
    assert limited.judged().verdict == "fail"


def test_a_move_that_never_ends_is_not_blamed_on_a_broker_that_is_stopped(make_run):
    run = make_run()
    manifest = replace(run.manifest, facts=replace(run.manifest.facts, done=Done(False, "in flight", 240.0)))
    still = held(replace(run, manifest=manifest), jvm_stopped=lambda t: t >= 20)
    assert verdicts(still.judged(), "move-done") == {"inconclusive"}
    free = judge(manifest, run.samples, run.events)
    assert verdicts(free, "move-done") == {"fail"}


def ended(run, *instants, line=None, events=(), ends=()):
    """A run whose log of b2 says at these instants that a signal ends the process; `ends` are times and statuses."""
    own = () if line is None else (line,)
    log = HostLog("b2", findings=own, terminated_us=tuple(map(us, instants)))
    logs = (HostLog("b1"), replace(log, ended=tuple(ProcessEnd(us(t), status) for t, status in ends)))
    facts = replace(run.manifest.facts, logs=logs, restored=Differences(False, ("broker 2 did not answer",)))
    events = pa.concat_tables([run.events, events_table(events)])
    return replace(run, manifest=replace(run.manifest, facts=facts), events=events)


def test_a_process_that_a_signal_ended_is_named_and_its_configuration_is_not_blamed(make_run):
    judgement = ended(make_run(), 21).judged()
    assert found(judgement)["b2"].why == "b2: a signal ended its process at +21.0 s, as its log says"
    assert verdicts(judgement, "config-restored") == {"inconclusive"}


@pytest.mark.parametrize(
    "kafkas",
    [
        {"instants": ()},
        {"instants": (), "line": LogFinding("b2", us(20), "FATAL", "jvm", "# A fatal error has been detected", 1)},
        {"instants": (21,), "events": (Event(us(19), "broker.killed", host="b2"),)},
        {"instants": (-20, 69)},
    ],
    ids=["without a word", "it says why", "the run ended it", "before and after the move"],
)
def test_a_broker_that_ends_by_itself_or_by_the_run_is_not_excused(make_run, kafkas):
    judgement = ended(make_run(), *kafkas.pop("instants"), **kafkas).judged()
    assert "b2" not in found(judgement)
    assert verdicts(judgement, "config-restored") == {"fail"}


KILLED = ((21, 137),)


def test_a_process_that_somebody_killed_is_named_and_its_configuration_is_not_blamed(make_run):
    judgement = held(ended(make_run(nic_counter_factor=1.2), ends=KILLED)).judged()
    why = "b2: SIGKILL ended its process at +21.0 s, and the run did not send it"
    assert found(judgement)["b2"].why == why
    assert verdicts(judgement, "config-restored", *RATES) == {"inconclusive"}
    assert noisy(judgement)


@pytest.mark.parametrize(
    ("kafkas", "said"),
    [
        ({"ends": ((21, 134),)}, "; the process of b2 ended with status 134 at +21.0 s"),
        ({"ends": ((21, 1),)}, "; the process of b2 ended with status 1 at +21.0 s"),
        ({"ends": KILLED, "events": (Event(us(19), "broker.killed", host="b2"),)}, ""),
        ({"ends": KILLED, "events": (Event(us(19), "broker.leaving", host="b2"),)}, ""),
        ({"ends": KILLED, "events": (Event(us(20.9), "process.ending", "SIGKILL", "b2"),)}, ""),
        ({"ends": ((-20, 137), (69, 137))}, ""),
    ],
    ids=[
        "it aborted",
        "it exited",
        "the run killed it",
        "the run restarted it",
        "its signal",
        "before and after the move",
    ],
)
def test_a_crash_and_a_kill_by_the_run_are_not_excused(make_run, kafkas, said):
    judgement = held(ended(make_run(), **kafkas)).judged()
    assert {host: c.verdict for host, c in found(judgement).items()} == {None: "pass"}
    assert found(judgement)[None].why == f"no reading and no log says that something held a broker back{said}"
    assert verdicts(judgement, "config-restored") == {"fail"}


ASKED = Event(us(20.9), "process.ending", "SIGTERM", "b2")


@pytest.mark.parametrize(
    ("instants", "ends", "why"),
    [
        ((), ((21, 143), (40, 137)), "b2: SIGKILL ended its process at +40.0 s, and the run did not send it"),
        ((), ((10, 137),), "b2: SIGKILL ended its process at +10.0 s, and the run did not send it"),
        ((21, 40), ((22, 143), (41, 143)), "b2: a signal ended its process at +40.0 s, as its log says"),
    ],
    ids=["later", "before", "SIGTERM"],
)
def test_an_end_from_outside_is_named_though_the_run_ended_the_process_at_another_time(make_run, instants, ends, why):
    assert found(held(ended(make_run(), *instants, ends=ends, events=(ASKED,))).judged())["b2"].why == why


def test_each_signal_of_the_run_explains_the_end_that_follows_it(make_run):
    again = Event(us(39.9), "process.ending", "SIGTERM", "b2")
    run = held(ended(make_run(), 21, 40, ends=((22, 143), (41, 137)), events=(ASKED, again)))
    assert set(found(run.judged())) == {None}


def test_a_run_of_before_the_event_of_each_signal_may_have_ended_the_process_several_times(make_run):
    """An upgrade that failed was taken back, and a restart without an answer was repeated, after one event."""
    leaving = Event(us(19), "broker.leaving", host="b2")
    after = held(ended(make_run(), 21, 40, ends=((22, 143), (41, 143)), events=(leaving,)))
    assert set(found(after.judged())) == {None}
    before = held(ended(make_run(), ends=((10, 137), (21, 143)), events=(leaving,)))
    assert found(before.judged())["b2"].why.startswith("b2: SIGKILL ended its process at +10.0 s")


@pytest.mark.parametrize(("change", "named_too"), [("joined", True), ("left", False)])
def test_a_run_ends_the_broker_that_leaves_and_none_that_joins(make_run, change, named_too):
    manifest, samples, events = relocated(experiment="scale-out")
    member = Membership("b2", change, us(-8), (), registered=True, container=True)
    logs = (HostLog("b1"), HostLog("b2", ended=(ProcessEnd(us(4), 137),)))
    manifest = replace(
        manifest,
        relocation=replace(manifest.relocation, membership=member),
        facts=replace(manifest.facts, logs=logs),
    )
    asked = pa.concat_tables([events, events_table([Event(us(-8), "scale.asked", change, "b2")])])
    run = replace(make_run(), manifest=manifest, samples=samples, events=asked)
    assert ("b2" in found(held(run).judged())) is named_too


@pytest.mark.parametrize(
    ("end", "apart_s", "named_too"), [(20.7, -0.3, False), (20.7, 0.0, True), (20.8995, 0.0, False)]
)
def test_the_clock_of_another_machine_or_a_log_in_milliseconds_may_be_behind_the_event(
    make_run, end, apart_s, named_too
):
    run = held(ended(make_run(), ends=((end, 137),), events=(ASKED,)))
    clocks = (ClockReading("m", "before", apart_s, 0.0),)
    assert ("b2" in found(judge(replace(run.manifest, clocks=clocks), run.samples, run.events))) is named_too


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ({"jvm_stopped": lambda t: 20 <= t < 23}, 19),
        ({"agent_late": lambda t: {23: 3.4, 40: 5.0}.get(t, 0.001)}, 22),
        ({"cpu_throttled_seconds": lambda t: 4.0 + 0.2 * min(max(t - 20, 0), 20)}, 20),
        ({"jvm_cpus": lambda t: 1 if t < 30 else 2}, -3),
        ({"disk_free_bytes": lambda t: 4096 if t >= 20 else 9e9}, 19),
        ({"memory_limited": lambda t: 3 + 20 * (t > 20)}, 20),
        ({"disk_limited": lambda t: 20 <= t < 25}, 19),
    ],
    ids=["stopped", "paused", "limited", "CPU set", "full", "memory", "disk"],
)
def test_what_holds_a_broker_back_may_have_begun_after_the_last_reading_without_it(make_run, changed, first):
    run = held(make_run(), **changed)
    assert held_since_us(RunView(run.manifest, run.samples, run.events)) == us(first)


def test_an_end_has_its_own_instant(make_run):
    run = held(ended(make_run(), ends=KILLED))
    assert held_since_us(RunView(run.manifest, run.samples, run.events)) == us(21)


def test_a_kill_is_not_excused_where_the_kernel_may_have_done_it(make_run):
    uncounted = ended(make_run(), ends=KILLED)
    assert verdicts(uncounted.judged(), "config-restored") == {"fail"}
    run = held(uncounted)
    late = pc.greater(pc.cast(run.samples["ts"], pa.int64()), us(20))
    count = pc.equal(run.samples["metric"], "memory.killed")
    lost = replace(run, samples=run.samples.filter(pc.invert(pc.and_(late, count))))
    assert verdicts(lost.judged(), "config-restored") == {"fail"}
    assert found(lost.judged())[None].why.endswith("; the process of b2 ended with status 137 at +21.0 s")


ENOUGH = counted("memory.available", "machine", lambda t: 2 * GIB - 0.9 * GIB * (t > 20))


def test_a_kill_of_a_broker_that_took_the_memory_is_not_excused(make_run):
    """A program that guards the memory sends SIGKILL, and the kernel counts nothing."""
    run = held(ended(make_run(), ends=KILLED))
    taking = replace(run, samples=pa.concat_tables([run.samples, samples_table([*SMALL_MACHINE, *taken(1.0)])]))
    assert verdicts(taking.judged(), "config-restored") == {"fail"}
    assert found(taking.judged())[None].why.endswith("; the process of b2 ended with status 137 at +21.0 s")


def test_an_agent_that_is_late_because_brokers_took_the_memory_excuses_nothing(make_run):
    run = held(make_run(nic_counter_factor=1.2), agent_late=lambda t: 3.4 if t == 23 else 0.001)
    assert run.judged().verdict == "inconclusive"
    taking = replace(run, samples=pa.concat_tables([run.samples, samples_table([*SMALL_MACHINE, *taken(1.0)])]))
    assert set(found(taking.judged())) == {None} and taking.judged().verdict == "fail"


def test_a_kill_just_before_the_end_of_the_move_is_named_by_a_reading_after_it(make_run):
    end = make_run().judged().measures.done_s - 0.001
    assert "b2: SIGKILL ended" in found(held(ended(make_run(), ends=((end, 137),))).judged())["b2"].why


def test_the_kernel_that_kills_a_broker_for_memory_is_named_and_excuses_what_others_took(make_run):
    def judged(more=(), document=None):
        run = held(ended(make_run(), ends=KILLED), memory_killed=lambda t: 2 + (t > 20))
        if document is not None:
            topology = replace(run.manifest.topology, document=document)
            run = replace(run, manifest=replace(run.manifest, topology=topology))
        return judge(run.manifest, pa.concat_tables([run.samples, samples_table(more)]), run.events)

    others = judged(SMALL_MACHINE)
    why = "b2: the kernel killed its process for memory at +21.0 s, and brokers had not taken it"
    assert found(others)["b2"].why == why
    assert verdicts(others, "config-restored") == {"inconclusive"}
    several = {"hosts": {"b1": {}}, "machines": {"m": {}}}
    for own in (judged([*SMALL_MACHINE, *taken(1.0)]), judged(SMALL_MACHINE, document=several), judged(ENOUGH)):
        said = "; the process of b2 ended with status 137 at +21.0 s: the kernel killed it for memory"
        assert found(own)[None].why.endswith(said)
        assert verdicts(own, "config-restored") == {"fail"}


def test_what_happens_before_the_move_and_after_it_holds_no_broker_back(make_run):
    run = held(
        make_run(nic_counter_factor=1.2),
        jvm_stopped=lambda t: t == -4 or t >= 64,
        agent_late=lambda t: 3.0 if t == -4 or t >= 64 else 0.0,
        memory_limited=lambda t: 100 + t * (t < -3),
    )
    assert set(found(run.judged())) == {None}


def test_a_disk_that_brokers_filled_excuses_nothing(make_run):
    def free(t):
        return 9e9 - 0.45e9 * min(max(t, 0), 20) + 4096

    def wrote(share):
        rows = [Sample(us(t), "b1", "io.write_bytes", share * (9e9 - free(t))) for t in range(-5, 65)]
        run = held(make_run(nic_counter_factor=1.2), disk_free_bytes=free)
        return replace(run, samples=pa.concat_tables([run.samples, samples_table(rows)])).judged()

    assert "b2" in found(wrote(0.4))
    assert "b2" not in found(wrote(0.6)) and wrote(0.6).verdict == "fail"


def test_a_machine_that_exists_may_have_limits_of_its_own(make_run):
    own = {
        "memory_limited": lambda t: 100 + t,
        "disk_limited": lambda t: 1.0,
        "cpu_throttled_seconds": lambda t: 4.0 + 0.5 * (t + 5),
    }
    run = held(make_run(nic_counter_factor=1.2), **own)
    topology = run.manifest.topology
    document = {**topology.document, "provision": "inventory"}
    exists = replace(run, manifest=replace(run.manifest, topology=replace(topology, document=document)))
    assert "b2" in found(run.judged()) and "b2" not in found(exists.judged())


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({"disk_free_bytes": lambda t: 4096 if t >= 20 else 9e9}, "inconclusive"),
        ({"jvm_cpus": lambda t: 1 if 20 <= t < 30 else 2}, "fail"),
    ],
    ids=["full disk", "fewer CPUs"],
)
def test_a_full_disk_alone_explains_what_its_broker_logs(make_run, changed, verdict):
    lines = [LogFinding(host, us(21), "FATAL", "kafka", "No space left on device", 1) for host in ("b1", "b2")]
    run = make_run()
    logs = tuple(HostLog(line.host, findings=(line,)) for line in lines)
    run = replace(run, manifest=replace(run.manifest, facts=replace(run.manifest.facts, logs=logs)))
    judgement = held(run, **changed).judged()
    assert {c.host: c.verdict for c in named(judgement, "logs-clean")} == {"b1": "fail", "b2": verdict}


def unanswered(told, first_s, until_s):
    """The samples of a run whose store gave no counters for a time."""
    times = us(first_s), us(until_s)
    return [each for each in samples(told) if each.metric != "s3.requests" or not times[0] <= each.ts_us <= times[1]]


@pytest.mark.parametrize(
    ("told", "until_s", "verdict"),
    [
        (replace(TIERED, seconds=9.0), 6.0, "inconclusive"),
        (replace(TIERED, seconds=9.0), 3.0, "fail"),
        (replace(Told(), seconds=9.0), 6.0, "fail"),
    ],
    ids=["tiered", "for two readings", "on disk"],
)
def test_a_store_that_was_down_while_data_moved_is_not_blamed_on_brokers(told, until_s, verdict):
    """With a store a move of these ten partitions takes 5.8 s at most; on disk it is faster than the NIC."""
    manifest, _samples, events = relocated(told=told)
    kept = unanswered(told, 1.0, until_s)
    error = LogFinding("b2", us(3), "ERROR", "remote", "Error occurred while reading the remote data", 1)
    logs = (HostLog("b1"), HostLog("b2", findings=(error,)))
    criteria = ("s3-seconds", "duration-formula")
    run = replace(manifest, facts=replace(manifest.facts, logs=logs), criteria=criteria)
    judgement = judge(run, samples_table(kept), events)
    assert verdict in verdicts(judgement, *criteria)
    assert {c.host: c.verdict for c in named(judgement, "logs-clean")} == {"b1": "pass", "b2": verdict}
    down = found(judgement).get("s1")
    assert (down is not None) == (verdict == "inconclusive") == noisy(judgement)
    if down:
        assert down.why == "s1: the object store's server gave no answer in 5 readings, first at +1.9 s"


@pytest.mark.parametrize(("late_s", "verdict"), [(4.0, "inconclusive"), (0.5, "fail")])
def test_a_store_in_a_paused_container_is_not_blamed_on_brokers(late_s, verdict):
    """Its agent is paused as well, so no reading says that the server gave no answer."""
    told = replace(TIERED, seconds=9.0)
    manifest, _samples, events = relocated(told=told)
    kept = [each for each in samples(told) if each.host != "s1" or not us(1.0) <= each.ts_us <= us(1.0 + late_s)]
    error = LogFinding("b2", us(3), "ERROR", "remote", "Error occurred while reading the remote data", 1)
    facts = replace(manifest.facts, logs=(HostLog("b1"), HostLog("b2", findings=(error,))))
    run = replace(manifest, facts=facts, criteria=("s3-seconds",))
    judgement = judge(run, samples_table([*kept, Sample(us(6.0), "s1", "agent.late", late_s)]), events)
    assert verdicts(judgement, "s3-seconds") == {verdict}
    assert {c.host: c.verdict for c in named(judgement, "logs-clean")} == {"b1": "pass", "b2": verdict}
    why = "s1: its agent was 4.0 s late at +6.0 s: its container was paused, or had no CPU"
    assert [each.why for each in found(judgement).values()] == ([why] if verdict == "inconclusive" else [])


@pytest.mark.parametrize(("until_s", "verdict"), [(4.0, "fail"), (12.0, "inconclusive")])
def test_a_store_that_was_down_after_the_move_explains_what_it_lacks(until_s, verdict):
    manifest, _samples, events = relocated(told=TIERED)
    lacking = Uploads(10, ("s3-0 up to offset 9, and the move ended at 20",))
    run = replace(manifest, relocation=replace(manifest.relocation, uploads=lacking))
    judgement = judge(run, samples_table(unanswered(TIERED, 3.0, until_s)), events)
    assert verdicts(judgement, "new-leader-uploads") == {verdict}
