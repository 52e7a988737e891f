"""Which broker is asked when one refuses connections: over real sockets, with brokers that know a few answers."""

import socket
import time
from contextlib import closing

import kafka.errors as client_errors
import pytest
from kafka.protocol.admin import DescribeConfigsRequest

from testbed.errors import UsageError
from testbed.kafka.connection import Connection
from testbed.kafka.errors import UnreachableError
from tests.fakes.broker import FakeBroker

TIMEOUT_S = 2.0


@pytest.fixture
def brokers():
    cluster = {}
    made = [FakeBroker(node_id, cluster) for node_id in (1, 2)]
    yield made
    for broker in made:
        broker.stop()


@pytest.fixture
def connection(brokers):
    """Bootstrapped by the first broker alone, so that no connection to the second one is left from it."""
    with closing(Connection(f"127.0.0.1:{brokers[0].port}", TIMEOUT_S, "test")) as connection:
        yield connection


@pytest.mark.parametrize("bootstrap", ["kafka:909x", "kafka:99999", "kafka:0", ":9092", "[::1:9092", " , ", ""])
def test_what_is_no_address_is_wrong_usage(bootstrap):
    with pytest.raises(UsageError, match="must be HOST:PORT"):
        Connection(bootstrap, TIMEOUT_S, "test")


def test_blanks_and_a_comma_too_many_are_no_addresses(brokers):
    with closing(Connection(f" 127.0.0.1:{brokers[0].port}, ", TIMEOUT_S, "test")) as connection:
        assert connection.bootstrap == f"127.0.0.1:{brokers[0].port}"


def request():
    return DescribeConfigsRequest(resources=[], include_synonyms=True, min_version=1)


def test_any_broker_means_another_one_when_one_refuses(brokers, connection, monkeypatch):
    brokers[1].stop()
    manager = connection.client._manager
    chosen = []

    def the_dead_one_first():
        chosen.append(1 if manager.connection_delay(2) > 0 else 2)
        return chosen[-1]

    monkeypatch.setattr(manager, "least_loaded_node", the_dead_one_first)
    begun = time.monotonic()
    connection.send("describe", request(), None)
    # The client, too, learns the brokers anew when it finds one dead, and may choose again after the answer.
    assert (chosen[0], 1 in chosen, brokers[0].asked) == (2, True, 1)
    assert time.monotonic() - begun < TIMEOUT_S  # it did not wait for an answer of the dead one


def test_one_given_broker_that_refuses_is_told_at_once_and_by_its_address(brokers, connection):
    brokers[1].stop()
    begun = time.monotonic()
    with pytest.raises(UnreachableError) as refused:
        connection.send("describe", request(), 2)
    assert time.monotonic() - begun < 1.0
    assert str(refused.value) == (
        f"describe: BROKER_NOT_AVAILABLE (broker 2 at 127.0.0.1:{brokers[1].port}: 111 ECONNREFUSED)"
    )
    assert brokers[0].asked == 0


def test_when_all_refuse_it_is_tried_for_as_long_as_there_is_time(brokers, connection):
    for broker in brokers:
        broker.stop()
    begun = time.monotonic()
    with pytest.raises(UnreachableError, match="BROKER_NOT_AVAILABLE"):
        connection.send("describe", request(), None)
    assert TIMEOUT_S <= time.monotonic() - begun < 2 * TIMEOUT_S


def test_what_has_been_sent_is_not_sent_again(brokers, connection):
    for broker in brokers:
        broker.hang_up = True
    with pytest.raises(UnreachableError, match="NETWORK_EXCEPTION") as told:
        connection.send("describe", request(), None)
    assert "Error(" not in str(told.value) and "KafkaConnectionError" not in str(told.value)
    assert sum(broker.asked for broker in brokers) == 1


def test_a_controller_that_refuses_is_looked_for_anew(brokers, connection):
    connection.client._controller_id = 2
    brokers[1].stop()

    def ask_the_controller():
        manager = connection.client._manager
        return manager.run(manager.send, request(), connection.client._controller_id or 1)

    connection.call("ask", ask_the_controller)
    assert brokers[0].asked == 1


def test_what_listens_but_does_not_answer_is_told_from_what_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as mute:
        place = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(
            UnreachableError, match="something listens there but does not answer as a PLAINTEXT listener"
        ):
            Connection(place, 2, "test")
    with pytest.raises(UnreachableError) as refused:
        Connection(place, 2, "test")
    assert str(refused.value) == (
        f"cluster at {place} within 2 s: NO_ANSWER (broker bootstrap-0 at {place}: 111 ECONNREFUSED)"
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (client_errors.KafkaConnectionError(), "the connection ended before the answer"),
        (client_errors.KafkaConnectionError("closed"), "closed"),
        (client_errors.KafkaTimeoutError(), "no answer in time"),
    ],
)
def test_no_message_has_the_name_of_an_exception(error, words):
    def fail():
        raise error

    with pytest.raises(UnreachableError) as told:
        connected(None).call("describe", fail)
    assert str(told.value) == f"describe: NETWORK_EXCEPTION ({words})"


class NoController:
    """A client whose requests met brokers that are not the controller, this many times."""

    def __init__(self, times):
        self.left, self.asked, self._controller_id = times, [], 1

    def ask(self, text="Failed to find active controller id!"):
        self.asked.append(self._controller_id)
        self._controller_id = 1
        if self.left:
            self.left -= 1
            raise RuntimeError(text)
        return "done"


def connected(client, timeout_s=5.0):
    connection = Connection.__new__(Connection)
    connection.client, connection.timeout_s = client, timeout_s
    return connection


def test_what_met_no_controller_is_asked_again_and_the_controller_looked_up_anew():
    client = NoController(2)
    assert connected(client).call("create topic 't'", client.ask) == "done"
    assert client.asked == [1, None, None]


def test_a_controller_that_is_not_found_in_time_is_no_answer_and_named():
    client = NoController(10**9)
    with pytest.raises(UnreachableError, match=r"create topic 't': NOT_CONTROLLER \(no broker that was asked is the"):
        connected(client, 0.1).call("create topic 't'", client.ask)
    assert len(client.asked) > 1


def test_any_other_runtime_error_is_what_it_is():
    client = NoController(1)
    with pytest.raises(RuntimeError, match="dictionary changed size"):
        connected(client).call("x", client.ask, "dictionary changed size during iteration")
    assert len(client.asked) == 1


class Hanging:
    """A client whose controller hangs, and is then no longer listed."""

    def __init__(self):
        self._controller_id = 3

    def ask(self):
        if self._controller_id == 3:
            raise client_errors.RequestTimedOutError
        return "done"

    def ask_fenced(self):
        if self._controller_id == 3:
            raise client_errors.UnknownBrokerIdError
        return "done"


def test_a_controller_that_hangs_is_asked_once():
    client = Hanging()
    with pytest.raises(UnreachableError, match="REQUEST_TIMED_OUT"):
        connected(client).call("list reassignments", client.ask)
    assert connected(client).call("list reassignments", client.ask) == "done"


def test_a_controller_that_was_fenced_is_looked_up_anew(monkeypatch):
    client = Hanging()
    monkeypatch.setattr(Connection, "_refresh", lambda _self, _what: None)
    assert connected(client).call("list reassignments", client.ask_fenced) == "done"
