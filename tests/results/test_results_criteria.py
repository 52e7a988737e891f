"""Which verdict a run gets, and why: one kind of run after the other."""

import importlib
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

from results.contract.aliases import EXPERIMENTS, FAMILIES
from results.contract.logs import HostLog, LogFinding
from results.contract.manifest import Differences, Done, Facts, Fetchers, Records
from results.criteria import UnknownExperimentError, judge
from results.criteria.criterion import CLUSTER_CHANGED, PRECONDITIONS
from results.criteria.judgement import catalogue, machine_criteria
from tests.results.judged import named, not_passed, verdicts

RATES = {"throttled-window", "steady-mean", "control-unthrottled", "broker-rate-agrees", "nic-conservation"}


def test_a_good_run_passes(make_run):
    judgement = make_run().judged()
    assert judgement.verdict == "pass", [c for c in judgement.criteria if c.verdict != "pass"]
    assert len(named(judgement, "throttled-window")) == 2
    for steady in named(judgement, "steady-mean"):
        assert 0.98 < steady.observed < 0.99
    assert all(c.series for c in judgement.criteria)
    assert 1.0 < judgement.measures.kip73_ratio < 1.1


def test_arrow_and_pandas_give_the_same(make_run):
    run = make_run()
    assert judge(run.manifest, run.samples.to_pandas(), run.events.to_pandas()) == run.judged()


def test_a_doubled_quota_fails_by_bytes_and_by_what_the_brokers_say(make_run):
    judgement = make_run(real_quota=20e6).judged()
    assert judgement.verdict == "fail"
    assert verdicts(judgement, "throttled-window") == {"fail"}
    assert verdicts(judgement, "quota-in-force") == {"fail"}
    assert "leader 20 MB/s at +0.2 s" in named(judgement, "quota-in-force")[0].why


def test_a_quota_that_is_late_on_one_broker_fails_there(make_run):
    judgement = make_run(late_quota_host="b2").judged()
    assert judgement.verdict == "fail"
    assert [(c.host, c.verdict) for c in named(judgement, "quota-in-force")] == [("b1", "pass"), ("b2", "fail")]
    assert "leader none at +0.2 s, 13 of" in named(judgement, "quota-in-force")[1].why


def test_a_burst_between_two_samples_fails(make_run):
    judgement = make_run(burst_at_s=30.0).judged()
    assert verdicts(judgement, "throttled-window") == {"fail"}
    assert verdicts(judgement, "quota-in-force") == {"pass"}


def test_a_gap_may_hide_a_burst(make_run):
    judgement = make_run(gap=("b2", 30.0, 35.0)).judged()
    assert judgement.verdict == "inconclusive"
    window = named(judgement, "throttled-window")[0]
    assert (window.verdict, window.why) == ("inconclusive", "no sample for 6.0 s: the run would not show a burst in it")
    assert "was not polled for 5.6 s" in named(judgement, "quota-in-force")[1].why


def test_a_burst_over_the_bound_fails_even_beside_a_gap(make_run):
    judgement = make_run(gap=("b2", 50.0, 54.0), burst_at_s=30.0).judged()
    assert verdicts(judgement, "throttled-window") == {"fail"}


def test_samples_that_stop_before_the_end_are_a_gap(make_run):
    judgement = make_run(gap=("b2", 45.0, 999.0)).judged()
    assert judgement.verdict == "inconclusive"
    assert "no sample for" in named(judgement, "throttled-window")[0].why


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"nic_ratio": 0.8}, "nic-measured (b1 transmit): measured at 0.800 of the declared payload rate"),
        ({"nic_ratio": 1.03}, "nic-measured (b1 transmit): measured at 1.030"),
        ({"cpu_busy": 0.9}, "machine-load (machine): 9"),
        ({"steal": 0.09}, "machine-load (machine): 9.1 % of the CPU was stolen over 11 s"),
        ({"without_metrics": ("cpu.steal",)}, "machine-load (machine): the machine's load was not sampled"),
    ],
)
def test_on_shaky_ground_rates_are_not_judged_but_facts_are(make_run, options, cause):
    judgement = make_run(real_quota=20e6, lost_records=2, **options).judged()
    # A slow NIC makes no reading late: twice the quota is too much all the same. A busy machine may.
    assert verdicts(judgement, "throttled-window") == {"fail" if cause.startswith("nic") else "inconclusive"}
    assert verdicts(judgement, *(set(RATES) - {"throttled-window"})) == {"inconclusive"}
    for criterion in judgement.criteria:
        if criterion.name in RATES and criterion.verdict != "fail":
            assert criterion.why.startswith(f"not judged: {cause}"), criterion.why
    assert verdicts(judgement, "records-intact", "quota-in-force") == {"fail"}
    assert verdicts(judgement, "config-restored", "leaders-as-planned", "move-done") == {"pass"}
    assert judgement.verdict == "fail"
    assert make_run(**options).judged().verdict == "inconclusive"


def test_a_nic_that_was_not_measured(make_run):
    run = make_run()
    manifest = replace(run.manifest, nics=run.manifest.nics[1:])
    judgement = judge(manifest, run.samples, run.events)
    assert named(judgement, "nic-measured")[0].why == "the NIC was not measured before the move"
    assert verdicts(judgement, *RATES) == {"inconclusive"}


def test_default_fetch_settings_have_the_bound_and_a_lower_one_of_their_own(make_run):
    judgement = make_run(fetch="default").judged()
    assert judgement.verdict == "pass"
    assert {c.expected for c in named(judgement, "steady-mean")} == {
        "0.826 to 1.0953 of 10 MB/s, with the pauses of Kafka's own settings"
    }
    assert judgement.measures.rates[0].highest_window_bytes_per_s > 10e6
    assert judgement.measures.rates[0].steady.mean_bytes_per_s < 9.5e6


def test_too_short_a_steady_part_is_inconclusive(make_run):
    judgement = make_run(log_bytes=250e6).judged()
    assert not_passed(judgement) == {"steady-mean"}
    assert "3 windows of 11 s are needed" in named(judgement, "steady-mean")[0].why


@pytest.mark.parametrize(("quota", "verdict"), [(10.5e6, "fail"), (10.2e6, "pass"), (9.8e6, "fail")])
def test_the_steady_mean_is_two_sided(make_run, quota, verdict):
    run = make_run()
    move = replace(run.manifest.move, quota_bytes_per_s=quota)
    judgement = judge(replace(run.manifest, move=move), run.samples, run.events)
    assert verdicts(judgement, "steady-mean") == {verdict}


SLOW = {"log_bytes": 15e6, "partitions": 20, "control_bytes": 1e6, "control_rate": 1e6}


@pytest.mark.parametrize(
    ("quota", "options", "verdict"),
    [
        (300e3, {}, "pass"),
        (300e3, {"background_bytes_per_s": 12e3}, "pass"),  # 3.8 % of what is copied
        (300e3, {"background_bytes_per_s": 60e3}, "fail"),
        (300e3, {"nic_counter_factor": 2.0}, "fail"),
        (300e3, {"nic_counter_factor": 0.96}, "fail"),
        (10e3, {"log_bytes": 3.1e6, "control_bytes": 0.1e6}, "inconclusive"),
        (10e3, {"log_bytes": 3.1e6, "control_bytes": 0.1e6, "nic_counter_factor": 9.0}, "fail"),
    ],
)
def test_other_traffic_has_a_constant_rate_and_hides_no_doubling(make_run, quota, options, verdict):
    found = named(make_run(quota=quota, **(SLOW | options)).judged(), "nic-conservation")
    assert {each.verdict for each in found} == {verdict}
    if verdict == "inconclusive":
        assert "bytes that came twice would not be seen" in found[0].why


def test_client_traffic_is_part_of_conservation(make_run):
    assert make_run(client_bytes_per_s=3e6).judged().verdict == "pass"


@pytest.mark.parametrize(
    ("options", "name", "verdict"),
    [
        ({"nic_counter_factor": 1.04}, "nic-conservation", "fail"),
        ({"nic_counter_factor": 0.96}, "nic-conservation", "fail"),
        ({"without_metrics": ("nic.rx.bytes",)}, "nic-conservation", "inconclusive"),
        ({"without_metrics": ("broker.bytes_in",)}, "nic-conservation", "inconclusive"),
        ({"kafka_rate_factor": 1.02}, "broker-rate-agrees", "fail"),
        ({"kafka_rate_factor": 0.98}, "broker-rate-agrees", "fail"),
        ({"fetch": "default", "kafka_rate_factor": 1.01}, "broker-rate-agrees", "pass"),
        ({"fetch": "default", "kafka_rate_factor": 1.09}, "broker-rate-agrees", "fail"),
        ({"without_metrics": ("broker.leader_replication.byte_rate",)}, "broker-rate-agrees", "inconclusive"),
        ({"control_bytes": 30e6, "control_rate": 1e6}, "control-unthrottled", "fail"),
        # It is still copied when the throttled partitions have arrived: that time does not count for it.
        ({"log_bytes": 250e6, "control_bytes": 14e6, "control_rate": 1.9e6}, "control-unthrottled", "fail"),
        ({"control_bytes": 9e6, "control_rate": 5e6}, "control-unthrottled", "inconclusive"),
        ({"without_metrics": ("quota.leader.rate", "quota.follower.rate")}, "quota-in-force", "inconclusive"),
        ({"without_metrics": ("log.bytes",)}, "throttled-window", "inconclusive"),
    ],
)
def test_what_disagrees_fails_and_what_is_missing_is_inconclusive(make_run, options, name, verdict):
    judgement = make_run(**options).judged()
    assert verdict in verdicts(judgement, name)
    assert judgement.verdict == verdict


@pytest.mark.parametrize("window", [(11, 1.0), (6, 2.0), (3, 1.0)])
def test_a_brokers_rate_is_compared_with_a_sensor_that_has_the_window_of_the_run(make_run, window):
    """With a sensor of 11 samples of 1 s the others would be off: by 0.13 % and by 2.8 %."""
    found = named(make_run(window=window, log_bytes=520e6).judged(), "broker-rate-agrees")
    assert {finding.verdict for finding in found} == {"pass"}
    assert next(finding.observed for finding in found if finding.host == "b2") == pytest.approx(1, abs=0.001)


def test_a_nic_without_room_cannot_show_the_control(make_run):
    run = make_run()
    slow = tuple(replace(n, payload_bytes_per_s=10.5e6) for n in run.manifest.nics)
    judgement = judge(replace(run.manifest, nics=slow), run.samples, run.events)
    control = named(judgement, "control-unthrottled")[0]
    assert (control.verdict, control.why) == (
        "inconclusive",
        "the NIC carries 10.5 MB/s: it leaves too little above the quota",
    )


def test_no_samples_at_all_never_pass(make_run):
    run = make_run()
    judgement = judge(run.manifest, run.samples.slice(0, 0), run.events)
    assert judgement.verdict == "inconclusive"
    assert verdicts(judgement, *RATES, "quota-in-force", "machine-load") == {"inconclusive"}


def test_no_start_no_rates(make_run):
    run = make_run()
    events = run.events.filter(pc.not_equal(run.events["kind"], "move.started"))
    judgement = judge(run.manifest, run.samples, events)
    assert judgement.measures.started_us is None
    assert verdicts(judgement, *RATES, "quota-in-force") == {"inconclusive"}


def test_a_move_without_an_end_is_watched_until_the_last_sample(make_run):
    run = make_run()
    events = run.events.filter(pc.not_equal(run.events["kind"], "move.done"))
    assert judge(run.manifest, run.samples, events).verdict == "pass"  # the fact, not the event, says it is done


@pytest.mark.parametrize(
    ("facts", "name", "verdict", "why"),
    [
        ({"records": None}, "records-intact", "inconclusive", "not read back"),
        ({"records": Records(0, 0, 0, 0, 0)}, "records-intact", "inconclusive", "no record was preloaded"),
        ({"records": Records(9, 8, 1, 0, 0)}, "records-intact", "fail", "8 of 9 found; 1 lost"),
        ({"records": Records(9, 8, 0, 0, 0)}, "records-intact", "fail", "8 of 9 found; 0 lost"),
        ({"records": Records(9, 9, 0, 1, 0)}, "records-intact", "fail", "1 duplicated"),
        ({"records": Records(9, 9, 0, 0, 2)}, "records-intact", "fail", "2 corrupt"),
        (
            {"records": Records(9, 9, 0, 0, 2, foreign=2)},
            "records-intact",
            "inconclusive",
            "2 records are of other clients",
        ),
        ({"records": Records(9, 8, 1, 0, 1, foreign=1)}, "records-intact", "fail", "1 lost"),
        ({"records": Records(9, 8, 0, 0, 1, foreign=1)}, "records-intact", "fail", "8 of 9 found"),
        ({"records": Records(9, 9, 0, 0, 0, reordered=2)}, "records-intact", "fail", "; 2 after a later record"),
        ({"records": Records(9, 9, 0, 0, 0, ("moving-3",))}, "records-intact", "fail", "another digest: moving-3"),
        ({"records": Records(0, 0, 0, 0, 0, ("moving-3",))}, "records-intact", "fail", "another digest: moving-3"),
        (
            {"records": Records(9, 9, 0, 0, 0, uncompared="gone")},
            "records-intact",
            "inconclusive",
            "not compared: gone",
        ),
        ({"records": Records(9, 9, 0, 1, 0, uncompared="gone")}, "records-intact", "fail", "1 duplicated"),
        ({"records": Records(9, 9, 0, 0, 1, first=("t-0: a gap",))}, "records-intact", "fail", "digest; t-0: a gap"),
        ({"restored": Differences(False, ("b1: rate left",))}, "config-restored", "fail", "b1: rate left"),
        ({"restored": Differences(True, ("b1: rate left",))}, "config-restored", "fail", "b1: rate left"),
        ({"restored": None}, "config-restored", "inconclusive", "the run did not establish it"),
        ({"leaders": Differences(False)}, "leaders-as-planned", "fail", "differences were found, but not which"),
        ({"done": Done(False, "moving-4 still on b1")}, "move-done", "fail", "moving-4 still on b1"),
        ({"in_force": None}, "quota-before-move", "inconclusive", "the run did not establish it"),
    ],
)
def test_facts(make_run, facts, name, verdict, why):
    run = make_run()
    manifest = replace(run.manifest, facts=replace(run.manifest.facts, **facts))
    judgement = judge(manifest, run.samples, run.events)
    (found,) = named(judgement, name)
    assert (found.verdict, judgement.verdict) == (verdict, verdict)
    assert why in found.why


def test_no_facts_at_all(make_run):
    run = make_run()
    assert judge(replace(run.manifest, facts=Facts()), run.samples, run.events).verdict == "inconclusive"


def test_a_broker_without_fetchers_in_the_manifest_has_no_bound(make_run):
    run = make_run()
    move = replace(run.manifest.move, fetchers={"b1": Fetchers(1, 0)})
    judgement = judge(replace(run.manifest, move=move), run.samples, run.events)
    assert named(judgement, "throttled-window")[1].why == "the manifest names no fetcher of b2 that could receive"


def test_an_experiment_without_rules_is_named(make_run):
    run = make_run()
    with pytest.raises(UnknownExperimentError, match="no judgement for experiment 'kip74'; known: .*kip73-two-node"):
        judge(replace(run.manifest, experiment="kip74"), run.samples, run.events)


def test_a_criterion_that_does_not_exist_is_refused_by_name(make_run):
    run = make_run()
    with pytest.raises(ValueError, match="there is no criterion 'stedy-mean'; did you mean steady-mean?"):
        judge(replace(run.manifest, criteria=("stedy-mean",)), run.samples, run.events)


def test_a_manifest_that_names_its_criteria_is_judged_by_them_and_by_those_of_every_move(make_run):
    run = make_run()
    judgement = judge(replace(run.manifest, experiment="kip74", criteria=("steady-mean",)), run.samples, run.events)
    names = {each.name for each in judgement.criteria}
    assert {"steady-mean", "records-intact", "nic-measured"} <= names
    assert not {"throttled-window", "live-records", "partitions-in-flight"} & names


def test_every_criterion_is_a_file_of_its_name():
    folder = Path(next(iter(importlib.import_module("results.criteria.catalogue").__path__)))
    files = {path.stem.replace("_", "-") for path in folder.glob("*.py") if path.stem != "__init__"}
    assert set(catalogue()) == files
    assert all(each.title and each.catches for each in catalogue().values())
    named = {name for names in (*EXPERIMENTS.values(), *FAMILIES.values()) for name in names}
    assert named <= files


def test_a_criterion_says_in_its_own_file_of_what_kind_it_is():
    def names(kind):
        return {each.name for each in catalogue().values() if getattr(each, kind)}

    assert names("about_machine") == {
        *("nic-measured", "nic-unchanged", "brokers-unrestrained", "machine-load", "memory-pressure", "disk-pressure"),
        *("clock-steady", "clocks-agree"),
    }
    assert {catalogue()[name].section for name in names("about_machine")} == {PRECONDITIONS}
    assert machine_criteria() == {*names("about_machine"), CLUSTER_CHANGED}
    on_nics = {"nic-conservation", "copied-bytes", "nic-bound", "duration-formula", "control-unthrottled"}
    assert names("of_nic_bytes") == on_nics
    assert names("of_records") == {"records-intact", "live-records"}
    assert names("excuses_brokers") == {"machine-load", "jvm-pauses"}
    assert names("explains_time") == {"duration-formula"}
    assert names("quota_binds") == {"steady-mean", "duration-model", "rate-after-throttle-change", "first-window"}


def with_logs(run, *logs):
    manifest = replace(run.manifest, facts=replace(run.manifest.facts, logs=logs))
    return judge(manifest, run.samples, run.events)


def test_an_error_in_a_brokers_log_fails_there_and_a_warning_is_attached(make_run):
    warned = HostLog("b1", None, (LogFinding("b1", 1, "WARN", "a.B", "slow", 2),))
    failed = HostLog("b2", None, (LogFinding("b2", 1, "ERROR", "a.B", "broken", 1),))
    judgement = with_logs(make_run(), warned, failed)
    assert judgement.verdict == "fail"
    assert [(c.host, c.verdict, c.why) for c in named(judgement, "logs-clean")] == [
        ("b1", "pass", "2 × WARN slow (B)"),
        ("b2", "fail", "ERROR broken (B)"),
    ]
    expected = "no ERROR or FATAL that is not known to be harmless"
    assert {c.expected for c in named(judgement, "logs-clean")} == {expected}
    assert with_logs(make_run(), warned, HostLog("b2")).verdict == "pass"


def test_a_log_that_was_not_read_leaves_the_run_open(make_run):
    judgement = with_logs(make_run(), HostLog("b1"), HostLog("b2", "gone"))
    assert (judgement.verdict, not_passed(judgement)) == ("inconclusive", {"logs-clean"})
