"""The broker properties that decide what a replication quota lets pass, as each host has them."""

from collections.abc import Mapping
from dataclasses import dataclass

from results.contract.move import SAMPLE_S, WINDOW_SAMPLES
from testbed.errors import UsageError
from testbed.kafka.admin import Admin
from testbed.throttle.quota_window import WindowSettings
from testbed.topology.model import Topology

FETCHERS = "num.replica.fetchers"
RESPONSE = "replica.fetch.response.max.bytes"
BUFFER = "replica.socket.receive.buffer.bytes"
SAMPLES, SAMPLE = "replication.quota.window.num", "replication.quota.window.size.seconds"
DEFAULTS: Mapping[str, int] = {
    FETCHERS: 1,
    RESPONSE: 10_485_760,
    BUFFER: 65_536,
    SAMPLES: WINDOW_SAMPLES,
    SAMPLE: SAMPLE_S,
}
"""Kafka's defaults."""
COMMON: Mapping[str, str] = {
    RESPONSE: "the bound of a window has one response of each fetcher",
    SAMPLES: "a window of one length is measured on all brokers",
    SAMPLE: "a window of one length is measured on all brokers",
}
"""The properties that must be the same on all brokers, and why."""
Values = Mapping[str, Mapping[str, str]]
"""Host → property → value; a property that is absent has its default."""


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """The fetchers of each host as a follower, and what all brokers have alike.

    `buffers` has the bytes of the socket with which each host fetches; a host without an entry has the kernel's.
    """

    fetchers: Mapping[str, int]
    buffers: Mapping[str, int]
    response_max_bytes: int
    window: WindowSettings


def quota_settings(values: Values) -> QuotaSettings:
    """Return the settings of brokers. Raise `UsageError` when they differ where the criteria need one value. Pure."""
    found = {host: _numbers(host, given) for host, given in values.items()}
    first, *others = found
    for key, why in COMMON.items():
        for other in others:
            if found[other][key] != found[first][key]:
                raise UsageError(
                    f"{key} is {found[first][key]} on {first} and {found[other][key]} on {other}: {why}; "
                    "give all brokers the same value in the topology's kafka.properties"
                )
    common = found[first]
    return QuotaSettings(
        {host: each[FETCHERS] for host, each in found.items()},
        {host: each[BUFFER] for host, each in found.items() if each[BUFFER] > 0},
        common[RESPONSE],
        WindowSettings(common[SAMPLES], float(common[SAMPLE])),
    )


def declared(topology: Topology, overlay: Mapping[str, str]) -> Values:
    """Return the properties that the brokers of a topology start with, under an experiment's overlay. Pure."""
    return {host.name: {**host.properties, **overlay} for host in topology.brokers}


def in_force(admin: Admin, ids: Mapping[str, int]) -> Values:
    """Return the values that each broker reports, also the values that were changed since its start."""
    return {host: admin.broker_settings(broker, list(DEFAULTS)) for host, broker in ids.items()}


def _numbers(host: str, given: Mapping[str, str]) -> dict[str, int]:
    found = dict(DEFAULTS)
    for key, text in given.items():
        if key in DEFAULTS:
            if (key, text) == (BUFFER, "-1"):
                found[key] = -1
                continue
            if not text.isdecimal() or int(text) < 1:
                raise UsageError(f"{host}: {key} is {text!r}; it must be a whole number above 0")
            found[key] = int(text)
    return found
