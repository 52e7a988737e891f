"""The kinds of words in the prompt's commands: how each is parsed, and which words complete it. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from testbed.kafka.types import is_internal
from testbed.suggestions import choices, did_you_mean
from testbed.topology.model import Topology
from testbed.units import (
    BIT_RATES,
    BYTE_RATES,
    DURATIONS,
    SIZES,
    UnitError,
    parse_byte_rate,
    parse_duration,
    parse_size,
)

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
EVERY_TOPIC = "*"


@dataclass(frozen=True)
class Vocabulary:
    """The names that a command may use now. `hosts` and `brokers` have every word for a host or a broker id."""

    hosts: Mapping[str, str]
    brokers: Mapping[str, int]
    racks: tuple[str, ...] = ()
    topics: Callable[[], Sequence[str]] = tuple
    faults: Callable[[], Sequence[int]] = tuple
    commands: tuple[str, ...] = ()
    declared: Topology | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        topology: Topology,
        topics: Callable[[], Sequence[str]],
        faults: Callable[[], Sequence[int]],
        commands: tuple[str, ...],
    ) -> "Vocabulary":
        """Return the names of a topology. `broker-2` is the broker with id 2, unless a host has that name."""
        hosts = {host.name: host.name for host in topology.hosts}
        brokers: dict[str, int] = {}
        for host in topology.brokers:
            assert host.node_id is not None
            hosts.setdefault(f"broker-{host.node_id}", host.name)
            brokers |= {str(host.node_id): host.node_id, host.name: host.node_id}
        for word, name in hosts.items():
            if name in brokers:
                brokers.setdefault(word, brokers[name])
        racks = tuple(rack for rack in topology.racks if rack not in hosts)
        return cls(hosts, brokers, racks, topics, faults, commands, topology)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Return every word that may begin a command about a host or a rack."""
        return (*self.hosts, *self.racks)


@dataclass(frozen=True, slots=True)
class WordKind:
    """A kind of word. `parse` raises ValueError, whose message names the allowed words. `suggest` gives completions."""

    parse: Callable[[str, Vocabulary], object]
    suggest: Callable[[str, Vocabulary], Iterable[str]] = lambda _typed, _names: ()


def _subject(text: str, names: Vocabulary) -> str:
    if text in names.racks:
        return text
    if text not in names.hosts:
        known = names.subjects
        raise ValueError(f"no host or rack {text!r}; there are {choices(known)}{did_you_mean(text, known)}")
    return names.hosts[text]


def _broker(text: str, names: Vocabulary) -> int:
    if text not in names.brokers:
        ids = [word for word in names.brokers if word.isdecimal()]
        raise ValueError(f"no broker {text!r}; there are {choices(ids)}{did_you_mean(text, names.brokers)}")
    return names.brokers[text]


def _brokers(text: str, names: Vocabulary) -> tuple[int, ...]:
    found = [_broker(word, names) for word in text.split(",")]
    if len(set(found)) < len(found):
        raise ValueError(f"{text!r} names a broker twice")
    return tuple(found)


def _topic(text: str, names: Vocabulary) -> str:
    known = names.topics()
    if text not in known:
        there = choices(known) if 0 < len(known) <= 10 else f"{len(known)} topics, `topics` lists them"
        raise ValueError(f"no topic {text!r}; there are {there}{did_you_mean(text, known)}")
    return text


def _topics(text: str, names: Vocabulary) -> tuple[str, ...]:
    if text == EVERY_TOPIC:
        return tuple(topic for topic in names.topics() if not is_internal(topic))
    return tuple(dict.fromkeys(_topic(word, names) for word in text.split(",")))


def _new_topic(text: str, names: Vocabulary) -> str:
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        raise ValueError(f"{text!r} is no topic's name; allowed: letters, digits, '.', '_' and '-'")
    if text in names.topics():
        raise ValueError(f"there is a topic {text!r} already")
    return text


def _count(text: str, _names: Vocabulary) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10**9:
        raise ValueError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _rate(text: str, _names: Vocabulary) -> int:
    rate = parse_byte_rate(text)
    if rate < 1:
        raise ValueError(f"{text} is no rate; leave `throttle` out for a move without a throttle")
    return rate


def _limit(text: str, names: Vocabulary) -> int | None:
    try:
        return None if text == "none" else _rate(text, names)
    except UnitError as error:
        raise ValueError(f"{error}, or none") from error


def _healable(text: str, names: Vocabulary) -> int | str:
    ids = names.faults()
    if text.isdecimal():
        if int(text) not in ids:
            active = choices([str(each) for each in ids]) if ids else "none"
            raise ValueError(f"no fault {text}; active are {active}")
        return int(text)
    return _subject(text, names)


def _acks(text: str, _names: Vocabulary) -> str:
    if text not in ("all", "1"):
        raise ValueError(f"acks {text!r}: allowed are all and 1")
    return text


def _command(text: str, names: Vocabulary) -> str:
    if text not in names.commands:
        raise ValueError(f"no command {text!r}{did_you_mean(text, names.commands)}; `help` lists all")
    return text


def with_units(units: Iterable[str]) -> Callable[[str, Vocabulary], Iterable[str]]:
    """Return the completions of a quantity: the typed number with each unit."""
    known = tuple(units)

    def suggest(typed: str, _names: Vocabulary) -> Iterable[str]:
        number = _NUMBER.match(typed)
        return [f"{number[0]}{unit}" for unit in known] if number else ()

    return suggest


def in_list(words: Callable[[Vocabulary], Iterable[str]]) -> Callable[[str, Vocabulary], Iterable[str]]:
    """Return the completions of the last word of a list with commas; no word comes twice."""

    def suggest(typed: str, names: Vocabulary) -> Iterable[str]:
        before, comma, _last = typed.rpartition(",")
        return [f"{before}{comma}{word}" for word in words(names) if word not in before.split(",")]

    return suggest


KINDS: Mapping[str, WordKind] = {
    "SUBJECT": WordKind(_subject, lambda _typed, names: names.subjects),
    "BROKER": WordKind(_broker, lambda _typed, names: names.brokers),
    "BROKERS": WordKind(_brokers, in_list(lambda names: names.brokers)),
    "TOPIC": WordKind(_topic, lambda _typed, names: names.topics()),
    "TOPICS": WordKind(_topics, in_list(lambda names: names.topics())),
    "NEW": WordKind(_new_topic),
    "COUNT": WordKind(_count),
    "RATE": WordKind(_rate, with_units(BYTE_RATES)),
    "LIMIT": WordKind(_limit, lambda typed, names: [*with_units(BYTE_RATES)(typed, names), "none"]),
    "SIZE": WordKind(lambda text, _names: parse_size(text), with_units(SIZES)),
    "TIME": WordKind(lambda text, _names: parse_duration(text), with_units(DURATIONS)),
    "ACKS": WordKind(_acks, lambda _typed, _names: ("all", "1")),
    "FAULT": WordKind(_healable, lambda _typed, names: [*map(str, names.faults()), *names.subjects]),
    "COMMAND": WordKind(_command, lambda _typed, names: names.commands),
}
"""The words in capitals that a command's usage may have."""
BIT_RATE_WORDS = with_units(BIT_RATES)
