"""The live view in a terminal and as a page."""

import io
import json
import urllib.error
import urllib.request
from dataclasses import replace

import pytest
from rich.console import Console

from testbed.cli.watch_page import state_since, watch_page
from testbed.cli.watch_view import HEADER, move_line, renderable, rows, state_lines
from testbed.errors import UsageError
from testbed.runner.watch import BrokerView, Change, MoveView, WatchReading

BROKER = BrokerView("b1", True, 5e6, None, 50e6, 50e6, 4.9e6, 5e6, None, None, 12.4, None)
DEAD = BrokerView("b2", False, None, None, 50e6, 50e6, None, None, None, None, None, None)
MOVE = MoveView(20, 5, 123_000_000, 24.6, stalled=False)


def reading(at_us=1_000_000, **more):
    return WatchReading(at_us, (BROKER, DEAD), MOVE, 20, 2, **more)


class StubWatch:
    readings = (reading(1), reading(2_000_000))
    changes = (Change(1, "[red]old"), Change(2_000_000, "t-1</script> has moved"))


def test_the_table_has_a_row_for_each_broker():
    first, second = rows(reading())
    assert len(first) == len(HEADER)
    assert first == ("b1", "5.00  10%", "–", "4.90 of 5", "–", "12 ms")
    assert second[0] == "b2 down"
    silent = replace(reading(problem="gone"), brokers=(replace(BROKER, serves=None),))
    assert rows(silent)[0][0] == "b1"


@pytest.mark.parametrize(
    ("move", "line"),
    [
        (None, "The controller lists no reassignment."),
        (MOVE, "5 of 20 partitions have moved; 123MB left to copy, in about 25s."),
        (
            MoveView(20, 5, 10, None, stalled=True),
            "5 of 20 partitions have moved; 10B left to copy; the move has stalled.",
        ),
    ],
)
def test_the_move_is_one_sentence(move, line):
    assert move_line(move) == line


def test_what_the_cluster_answered_is_no_markup():
    text = io.StringIO()
    Console(file=text, width=160, color_system=None).print(renderable("x", reading(), StubWatch.changes))
    assert "[red]old" in text.getvalue()
    assert "2 of 20 partitions lack replicas in sync." in text.getvalue()
    assert state_lines(reading(problem="gone")) == ["The cluster does not answer: gone"]


def ask(url, host=None):
    request = urllib.request.Request(url, headers={} if host is None else {"Host": host})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.read().decode()


def test_the_page_and_its_state():
    with watch_page(StubWatch(), "a<b>") as url:
        body = ask(url)
        assert "a&lt;b&gt;" in body and "uPlot" in body and "http://" not in body.split("<script>")[0]
        # Without an answer nothing is said of moves, nor that a broker is down.
        assert 'if (problem) return "The cluster does not answer";' in body
        assert "b.serves === false" in body and "b.serves ?" not in body
        state = json.loads(ask(f"{url}state?since=1"))
        assert [each["at_us"] for each in state["readings"]] == [2_000_000]
        assert state["changes"] == [{"at_us": 2_000_000, "clock": "00:00:02", "text": "t-1</script> has moved"}]
        assert json.loads(ask(f"{url}state?since=x")) == json.loads(json.dumps(state_since(StubWatch(), 0)))
        for path, host, status in (("other", None, 404), ("", "evil.example", 403)):
            with pytest.raises(urllib.error.HTTPError) as refused:
                ask(url + path, host)
            assert refused.value.code == status
        assert ask(url, "localhost:8080") == body  # through `ssh -L 8080:…`
        port = int(url.rsplit(":", 1)[1].strip("/"))
        taken = pytest.raises(UsageError, match=f"--port {port}: Address already in use; give another port")
        with taken, watch_page(StubWatch(), "x", port):
            pass


@pytest.mark.parametrize("port", [-1, 70_000])
def test_a_port_that_no_server_can_have_is_refused(port):
    with pytest.raises(UsageError, match=f"--port {port}: allowed are 1 to 65535"), watch_page(StubWatch(), "x", port):
        pass
