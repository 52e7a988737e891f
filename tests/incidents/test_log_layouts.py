"""Logs as other patterns, engines and tools write them say the same as in Kafka's own layout."""

import json

import pytest

from testbed.incidents.broker_logs import LogReport
from testbed.incidents.evidence_text import EvidenceText
from testbed.incidents.log_layouts import kafka_line

ISR = "[Partition orders-0 broker=1] Shrinking ISR from 1,2 to 1. Leader: (highWatermark: 5, endOffset: 6)."
LOGGER = "(kafka.cluster.Partition)"
OWN = f"[2026-11-24 12:00:00,123] INFO {ISR} {LOGGER}"
NOON_US = 1_795_521_600_123_000


@pytest.mark.parametrize(
    "line",
    [
        OWN,
        f"2026-11-24 12:00:00,123 INFO {ISR} {LOGGER} [data-plane-kafka-request-handler-0]",  # Strimzi
        f"2026-11-24 12:00:00,123 INFO  Partition:66 - {ISR}",
        f"[2026-11-24T12:00:00.123Z] INFO {ISR} {LOGGER}",
        f"[2026-11-24T13:00:00,123+0100] INFO {ISR} {LOGGER}",
        f"2026-11-24T06:30:00.123456-05:30 INFO {ISR} {LOGGER}",
        f"[2026-11-24 12:00:00,123]  INFO {ISR} {LOGGER}",
        f"[24.11.2026 12:00:00,123] INFO {ISR} {LOGGER}",
        f"{OWN} [data-plane-kafka-request-handler-0]",
        f"{OWN[:-1]}:66)",  # %c:%L
        f"24 Nov 2026 12:00:00,123 INFO {ISR} {LOGGER}",
        f"2026-11-24T15:00:00.999999999Z stdout F {OWN}",  # Kubernetes
        f"Nov 24 15:00:00 kafka1 kafka-server-start.sh[1234]: {OWN}",  # journald
        f"2026-11-24 12:00:00,123 [data-plane-kafka-request-handler-0] INFO  kafka.cluster.Partition - {ISR}",
        f"[2026-11-24 12:00:00,123] [main] INFO {ISR} {LOGGER}",
        f"2026-11-24T15:00:00.9Z [2026-11-24T13:00:00,123+0100] INFO {ISR} {LOGGER}",
        f"[2026-11-24 12:00:00,123 UTC] INFO {ISR} {LOGGER}",
        f"2026-11-24 12:00:00.123 GMT INFO {ISR} {LOGGER}",
        f"2026-11-24T13:00:00,123+01 INFO {ISR} {LOGGER}",
        f"2026-11-24 07:00:00,123 -05:00 INFO {ISR} {LOGGER}",
        f"kafka-1  | {OWN}",
        f"logs/server.log:17:{OWN}",
        f"\x1b[32m{OWN}\x1b[0m",
        json.dumps({"log": OWN + "\n", "stream": "stdout", "time": "2026-11-24T15:00:00.9Z"}),  # Docker
        json.dumps({"@timestamp": "2026-11-24T12:00:00.123Z", "level": "INFO", "message": ISR, "logger_name": "a.B"}),
        json.dumps({"time": "2026-11-24 12:00:00,123", "level": "INFO", "msg": ISR}),
        json.dumps({"timeMillis": NOON_US // 1000, "level": "INFO", "loggerName": "a.B", "message": ISR}),
        json.dumps(
            {
                "instant": {"epochSecond": NOON_US // 10**6, "nanoOfSecond": 123_456_789},
                "level": "INFO",
                "message": ISR,
            }
        ),
        json.dumps(
            {"@timestamp": "2026-11-24T12:00:00.123Z", "log.level": " INFO", "message": ISR, "log.logger": "a.B"}
        ),
    ],
)
def test_the_layout_does_not_change_what_a_log_says(line):
    report = LogReport()
    assert report.add(EvidenceText("server.log", f"{line}\n"))
    (found,) = report.isrs
    assert (found.at_us, found.shrinks) == (NOON_US, True)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "hello",
        ISR,
        f"[2026-99-24 12:00:00,123] INFO {ISR} {LOGGER}",
        f"[2026-11-24T12:00:00.123+9999] INFO {ISR}",
        f"0001-01-01T00:00:00+2359 INFO {ISR}",
        f"12:00:00,123 INFO {ISR} {LOGGER}",
        # What another zone's letters mean depends on the country.
        f"[2026-11-24 12:00:00,123 CST] INFO {ISR} {LOGGER}",
        json.dumps({"timeMillis": 10**18, "level": "INFO", "message": ISR}),
        json.dumps({"timeMillis": -1, "level": "INFO", "message": ISR}),
        json.dumps({"timeMillis": True, "level": "INFO", "message": ""}),
        json.dumps({"instant": {"epochSecond": "1"}, "level": "INFO", "message": ISR}),
        json.dumps({"instant": [1], "timeMillis": 1e300, "level": "INFO", "message": ISR}),
        f"[11/24/26 12:00:00] INFO {ISR} {LOGGER}",
        f"[2026-11-24 12:00:00,123] INFO {ISR[:60]}",  # cut off: what it says is not all there
        "{",
        "{}",
        '{"log": 1}',
        json.dumps({"log": json.dumps({"log": OWN})}),
        json.dumps({"time": "2026-11-24T12:00:00Z", "level": "INFO", "message": "two\nlines"}),
        "[" * 5000,
        '{"a":' * 5000,
    ],
)
def test_another_line_says_nothing(line):
    report = LogReport()
    report.add(EvidenceText("server.log", f"{line}\n"))
    assert report.isrs == []
    assert "\n" not in kafka_line(line)
