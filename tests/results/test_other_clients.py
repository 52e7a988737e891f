"""What another client changed leaves a failure open that it may explain, and no other."""

from dataclasses import replace

import pytest

from results.contract.cluster import ClusterChange
from results.contract.logs import HostLog, LogFinding
from results.contract.manifest import Done, Manifest
from results.criteria.judgement import judge, noisy
from tests.results.judged import named, verdicts
from tests.results.synthetic import us


def changed(run, *kinds):
    cluster = tuple(ClusterChange(us(7), kind, f"a change of {kind}") for kind in kinds)
    return judge(replace(run.manifest, cluster=cluster), run.samples, run.events)


def test_a_run_without_changes_by_others_has_no_such_finding(make_run):
    assert named(make_run().judged(), "cluster-unchanged") == []


def test_another_quota_leaves_open_what_it_explains_and_is_named(make_run):
    run = make_run(real_quota=6e6)
    assert verdicts(run.judged(), "quota-in-force", "steady-mean") == {"fail"}
    judgement = changed(run, "throttle", "throttle")
    assert judgement.verdict == "inconclusive"
    why = "another client changed the cluster: a change of throttle at +7.0 s; and 1 more change"
    assert [each.why for each in named(judgement, "cluster-unchanged")] == [why]
    assert {each.why for each in named(judgement, "quota-in-force")} == {f"not judged: cluster-unchanged: {why}"}
    assert noisy(judgement), "a night does not blame Kafka"


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        ("throttle", "fail"),
        ("reassignment", "fail"),
        ("topic", "fail"),
        ("configuration", "fail"),
        ("deletion", "inconclusive"),
    ],
)
def test_lost_records_are_explained_by_what_deletes_records_alone(make_run, kind, verdict):
    assert verdicts(changed(make_run(lost_records=3), kind), "records-intact") == {verdict}


def test_a_partition_outside_of_the_plan_moves_by_another_client_or_the_move_fails(make_run):
    run = make_run()
    done = Done(False, "outside of the plan, t-1 has replicas on [2], before on [1]")
    run = replace(run, manifest=replace(run.manifest, facts=replace(run.manifest.facts, done=done)))
    assert verdicts(run.judged(), "move-done") == {"fail"}
    assert verdicts(changed(run, "topic"), "move-done") == {"fail"}
    assert verdicts(changed(run, "reassignment"), "move-done") == {"inconclusive"}


def test_a_topic_of_others_explains_bytes_on_a_nic_and_no_leak(make_run):
    assert verdicts(changed(make_run(nic_counter_factor=1.2), "topic"), "nic-conservation") == {"inconclusive"}
    assert "fail" in verdicts(changed(make_run(real_quota=12.5e6), "topic"), "steady-mean")


@pytest.mark.parametrize(
    ("texts", "level", "count", "more", "verdict"),
    [
        (["Expected partition t-1 with topic id A to exist", "t-1: again"], "ERROR", 1, 0, "inconclusive"),
        (["Expected partition t-1 with topic id A to exist", "Disk error"], "ERROR", 1, 0, "fail"),
        (["Expected partition t-1 with topic id A to exist"], "ERROR", 1, 1, "fail"),
        (["Expected partition t-1 with topic id A to exist"], "ERROR", 2, 0, "fail"),
        (["Expected partition t-1 with topic id A to exist"], "FATAL", 1, 0, "fail"),
        (["Expected partition t-12 to exist"], "ERROR", 1, 0, "fail"),
        (["Expected partition not-t-1 to exist"], "ERROR", 1, 0, "fail"),
    ],
)
def test_errors_of_partitions_alone_that_another_client_reassigned_are_left_open(
    make_run, texts, level, count, more, verdict
):
    run = make_run()
    found = tuple(LogFinding("b1", us(8), level, "state.change.logger", text, count) for text in texts)
    log = HostLog("b1", findings=(*found, LogFinding("b1", us(8), "WARN", "any", "of another", 1)), more=more)
    facts = replace(run.manifest.facts, logs=(log, HostLog("b2")))
    cluster = (ClusterChange(us(7), "reassignment", "t-1 was reassigned to [1, 2]", "t-1"),)
    judgement = judge(replace(run.manifest, facts=facts, cluster=cluster), run.samples, run.events)
    assert {each.host: each.verdict for each in named(judgement, "logs-clean")} == {"b1": verdict, "b2": "pass"}
    unknown = (replace(cluster[0], partition=""),)
    judgement = judge(replace(run.manifest, facts=facts, cluster=unknown), run.samples, run.events)
    assert {each.host: each.verdict for each in named(judgement, "logs-clean")} == {"b1": "fail", "b2": "pass"}


def test_the_manifest_has_the_changes(make_run):
    manifest = replace(make_run().manifest, cluster=(ClusterChange(us(7), "throttle", "a rate"),))
    assert Manifest.from_json(manifest.to_json()) == manifest
