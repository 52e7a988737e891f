"""The loads of a capture: together they write what clients wrote, so throttle ÷ inbound stays."""

from datetime import UTC, datetime

import pytest

from testbed.incidents.capture import CapturedCluster, CapturedTopic
from testbed.incidents.captured_file import INCIDENT, incident_document, write_capture
from testbed.incidents.model import MOST_LOADS
from testbed.incidents.read import load
from testbed.incidents.scale_down import scale_down

THROTTLE, RATES = 4_000_000, (50_000.0, 250_000.0, 100_000.0)


def cluster(rates):
    topics = {
        f"t{number}": CapturedTopic(((1, 2),), ((3, 2),) if number == 0 else (None,), (10**6 * (number % 2),), (rate,))
        for number, rate in enumerate(rates)
    }
    return CapturedCluster(dict.fromkeys((1, 2, 3)), topics, THROTTLE)


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_throttle_to_inbound_stays_with_several_written_topics(tmp_path, factor):
    small = scale_down(cluster(RATES), 3, 10**9, factor)
    write_capture(tmp_path / "c", "x", small, 10**9, datetime(2026, 11, 24, tzinfo=UTC))
    broken = load(tmp_path / "c" / INCIDENT).broken
    assert [each.to for each in broken.loads] == ["captured-load", "t2", "t0"]
    (move,) = broken.entries[0].actions
    assert move.throttle / sum(each.produce for each in broken.loads) == THROTTLE / sum(RATES)


def test_what_more_topics_than_a_replay_has_loads_are_written_is_named():
    document, lost = incident_document("x", cluster([1e5 + number for number in range(MOST_LOADS + 2)]), 10**9)
    assert len(document["load"]) == MOST_LOADS
    assert document["load"][0]["produce"] == f"{100_000 + MOST_LOADS + 1}B/s"
    assert f"clients write 200001 B/s to other topics; the replay writes to the {MOST_LOADS} busiest" in lost
    document, lost = incident_document("x", cluster([900.0, 900.0]), 10**9)
    assert "load" not in document and not any("clients write" in each for each in lost)
