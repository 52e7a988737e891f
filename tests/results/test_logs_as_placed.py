"""Logs that are where no replica is, and copies that begin again, are found."""

from results.contract.schema import Event
from results.criteria import judge
from tests.results.stepped import DONE, LOGGED, MOVING, ORIGINAL, POLLED, TOPIC, log, stepped
from tests.results.synthetic import us

MIB = 1_048_576


def logs(seconds, sizes):
    return Event(us(seconds), "trace.logs", TOPIC, None, {"topic": TOPIC, "sizes": sizes})


def held(*brokers, size=4 * MIB):
    return {str(broker): {"0": size} for broker in brokers}


def found(*events):
    manifest, samples, table = stepped(events=(*POLLED, *events))
    judgement = judge(manifest, samples, table)
    return next((each for each in judgement.criteria if each.name == "logs-as-placed"), None)


def test_the_logs_of_the_replicas_alone_pass():
    copying = logs(2, held(1, 2, 3) | held(4, size=MIB))
    passed = found(*LOGGED, copying, logs(6, held(2, 3, 4)))
    assert (passed.verdict, passed.why, passed.observed) == ("pass", "the logs of all brokers were read 2 times", 0.0)


def test_a_log_of_a_removed_replica_and_a_missing_log_fail():
    failed = found(*LOGGED, logs(6, held(1, 2, 3)))
    assert failed.verdict == "fail"
    assert failed.why == (
        "broker 1 has a log of partition 0, which has replicas on 2, 3, 4; "
        "broker 4 has no log of partition 0, which has replicas on 2, 3, 4"
    )


def test_a_copy_that_begins_again_fails_also_when_it_is_whole_at_the_end():
    first, second = (logs(at, held(1, 2, 3) | held(4, size=size)) for at, size in ((2, MIB), (3, 4096)))
    failed = found(*LOGGED, first, second, logs(6, held(2, 3, 4)))
    assert (failed.verdict, failed.why) == (
        "fail",
        "the log of partition 0 on broker 4 had 1.049 MB, then 4.096 kB",
    )


def test_a_copy_that_was_cancelled_and_asked_for_again_may_begin_again():
    states = (log(-5, 10, ORIGINAL), log(1, 20, MOVING), log(2.5, 21, ORIGINAL), log(2.8, 22, MOVING))
    first, second = (logs(at, held(1, 2, 3) | held(4, size=size)) for at, size in ((2, MIB), (3, 4096)))
    assert found(*states, first, second, log(4.5, 30, DONE), logs(6, held(2, 3, 4))).verdict == "pass"


def test_no_log_of_a_deleted_topic_may_stay():
    gone = log(5, 40, {"gone": True})
    assert found(*LOGGED, gone, logs(6, {})).verdict == "pass"
    assert found(*LOGGED, gone, logs(6, held(4))).why == "broker 4 has a log of partition 0, which does not exist"


def test_what_was_not_read_is_open_and_older_runs_are_not_judged():
    problem = Event(
        us(6), "trace.logs", TOPIC, None, {"topic": TOPIC, "problem": "describe the log folders: TIMED_OUT"}
    )
    assert found(*LOGGED, problem).verdict == "inconclusive"
    assert found(logs(6, held(1, 2, 3))).why == "the controller's log was not read"
    assert found(*LOGGED) is None
