from testbed.handover.log_marks import marks
from testbed.kafka.types import TopicPartition
from testbed.probes.log_entries import entries
from tests.handover.golden import ARTICLE_SOURCE, ARTICLE_TARGET, ASKED_US, SOURCE, TARGET, UNCLEAN

TP = TopicPartition("orders-v2", 3)


def found(text, host="b1"):
    return list(marks(host, entries(text)))


def test_what_the_old_broker_says_of_closing() -> None:
    kinds = [(mark.kind, mark.tp, mark.ms, mark.ts_us - ASKED_US) for mark in found(SOURCE)]
    assert kinds == [
        ("deleting", None, None, 41_000),
        ("stream-closed", TP, None, 180_000),
        ("closed", TP, 139, 181_000),
        ("closed", TopicPartition("orders-v2", 30), 188, 230_000),
    ]


def test_what_the_new_broker_says_of_opening() -> None:
    said = found(TARGET, "b2")
    assert [mark.kind for mark in said] == ["transition", "meta-opened", "meta-loaded", "loaded", "loaded"]
    assert TP in said[0].tps
    assert TopicPartition("orders-v2", 30) not in said[0].tps
    assert (said[1].ms, said[1].epoch) == (150, 5)
    assert said[2].clean is True
    assert {mark.tp for mark in said[1:]} == {TP}


def test_a_broker_that_recovers_says_so() -> None:
    said = {mark.kind: mark.clean for mark in found(UNCLEAN)}
    assert said["meta-loaded"] is False
    assert said["recovered"] is False


def test_the_lines_of_the_article_are_known_too() -> None:
    assert [mark.kind for mark in found(ARTICLE_SOURCE)] == ["transition", "closed"]
    assert found(ARTICLE_TARGET)[1].said == "opened existing meta stream: stream_id=17"
    made = TARGET.replace(
        "opened existing meta stream: streamId=17", "created meta stream for _kafka_x/3, streamId: 17"
    )
    assert found(made)[1].kind == "meta-opened"


def test_an_apache_brokers_log_has_no_marks() -> None:
    at = "[2026-11-22 08:00:00,052] INFO"
    text = (
        f"{at} [Broker id=2] Transitioning 1 partition(s) to local followers. (state.change.logger)\n"
        f"{at} [LocalLog partition=orders-v2-3, dir=/var/lib/kafka] log closed (kafka.log.LocalLog)\n"
    )
    assert found(text) == []
