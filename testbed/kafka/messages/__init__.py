"""Messages of Kafka's protocol that kafka-python does not have. Each is defined by a JSON file of its name here."""

from kafka.protocol.api_message import ApiMessage


class UnregisterBrokerRequest(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]
    """A request to remove a broker's registration."""


class UnregisterBrokerResponse(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]
    """The answer to an `UnregisterBrokerRequest`."""
