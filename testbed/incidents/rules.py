"""What needs more than one value of a file: names that must exist, times that must fit. Pure."""

from collections.abc import Iterable, Iterator

from testbed.document import Path, Violation
from testbed.errors import UsageError
from testbed.incidents.actions.fault import InjectFault
from testbed.incidents.actions.move import Move
from testbed.incidents.actions.throttle import RaiseThrottle, SetThrottle
from testbed.incidents.expectations import ALWAYS, kinds
from testbed.incidents.expectations.move import MoveDone
from testbed.incidents.phrases import Names, unknown_names
from testbed.incidents.surface import EntryForm, IncidentForm
from testbed.incidents.words import format_time
from testbed.kafka.capabilities import Capability, LacksCapability, of_software, require
from testbed.suggestions import choices, did_you_mean
from testbed.topology.model import Topology

Placed = tuple[Path, EntryForm]


def broken_rules(form: IncidentForm, topology: Topology | None, entries: list[Placed]) -> Iterator[Violation]:
    """Everything wrong with one practice of a file; hosts are not checked without a topology."""
    names = Names(
        brokers=tuple(host.name for host in topology.brokers) if topology else (),
        racks=tuple(topology.racks) if topology else (),
        uplinks=tuple(topology.uplinks) if topology else (),
        topics=tuple(form.state.topics),
    )
    if topology is not None:
        yield from _placements(form, names)
        for path, entry in entries:
            yield from _sentences(path, entry, names)
            yield from _faults(path, entry, topology)
            yield from _software(path, entry, topology)
    yield from _load(form)
    yield from _throttle(form)
    for path, entry in entries:
        yield from _times(path, entry, form.lasts)
        yield from _triggers(path, entry, entries, names)
    yield from _practices(form)


def _placements(form: IncidentForm, names: Names) -> Iterator[Violation]:
    for topic, state in form.state.topics.items():
        for hosts in state.replicas:
            for host in hosts:
                if host not in names.brokers:
                    path = ("state", "topics", topic, "replicas")
                    yield Violation(path, _no("broker", host, names.brokers))


def _sentences(path: Path, entry: EntryForm, names: Names) -> Iterator[Violation]:
    for field, given in (("do", entry.do), ("expect", entry.expect)):
        for phrase in given:
            for wrong in unknown_names(phrase, names):
                yield Violation((*path, field), f"{phrase}: {wrong}")
            rack = getattr(phrase, "rack", None)
            if rack in names.racks and rack not in names.uplinks:
                allowed = choices(names.uplinks) if names.uplinks else "none, this topology shapes no uplink"
                yield Violation(
                    (*path, field), f"{phrase}: rack {rack} has no uplink of its own rate; allowed: {allowed}"
                )


def _faults(path: Path, entry: EntryForm, topology: Topology) -> Iterator[Violation]:
    for action in entry.do:
        if isinstance(action, InjectFault):
            try:
                action.check(topology)
            except UsageError as error:
                yield Violation((*path, "do"), f"{action}: {error}")


def _software(path: Path, entry: EntryForm, topology: Topology) -> Iterator[Violation]:
    """What the topology's software would accept, and not do."""
    have, who = of_software(topology), f"the software of {topology.name}"
    for action in entry.do:
        wanted = []
        if isinstance(action, SetThrottle | RaiseThrottle) or (isinstance(action, Move) and action.rate_bytes_per_s):
            wanted.append(Capability.THROTTLES_REPLICATION)
        if isinstance(action, Move) and len(action.hosts) > 1:
            wanted.append(Capability.REPLICATES)
        try:
            require(wanted, have, str(action), who)
        except LacksCapability as error:
            yield Violation((*path, "do"), str(error))


def _load(form: IncidentForm) -> Iterator[Violation]:
    if form.load is None:
        return
    topic = form.state.topics.get(form.load.to)
    if topic is None:
        yield Violation(("load", "to"), _no("topic", form.load.to, list(form.state.topics)))
    elif topic.size or topic.records:
        yield Violation(("load", "to"), f"{form.load.to} is filled already; allowed: a topic without size and records")


def _throttle(form: IncidentForm) -> Iterator[Violation]:
    throttle = form.state.throttle
    for index, topic in enumerate(throttle.topics if throttle else []):
        if topic not in form.state.topics:
            yield Violation(("state", "throttle", "topics", index), _no("topic", topic, list(form.state.topics)))


def _times(path: Path, entry: EntryForm, lasts_s: float) -> Iterator[Violation]:
    for field, value in (("at", entry.at), ("within", entry.within)):
        if value is not None and value > lasts_s:
            yield Violation(
                (*path, field), f"{format_time(value)} is after the end; allowed: lasts, {format_time(lasts_s)}"
            )
    for expectation in entry.expect:
        begins_s = entry.at or 0.0
        if isinstance(expectation, MoveDone) and begins_s <= lasts_s < begins_s + expectation.within_s:
            ends = format_time(begins_s + expectation.within_s)
            text = f"{expectation}: would have to be watched until {ends}; allowed: lasts, {format_time(lasts_s)}"
            yield Violation((*path, "expect"), text)
    if entry.within is not None and entry.when is None and entry.after is None:
        yield Violation((*path, "within"), "an entry without when or after needs no deadline; allowed: leave it out")
    if entry.optional and entry.when is None and entry.after is None:
        yield Violation((*path, "optional"), "a time always comes; allowed: with when or after")


def _triggers(path: Path, entry: EntryForm, entries: list[Placed], names: Names) -> Iterator[Violation]:
    for field, trigger in (("when", entry.when), ("after", entry.after)):
        topic = None if trigger is None else trigger.topic
        if topic is not None and topic not in names.topics:
            yield Violation((*path, field), _no("topic", topic, names.topics))
    if entry.after is not None:
        moved = {
            topic for _, other in entries for action in other.do if isinstance(action, Move) for topic in action.topics
        }
        wanted = {entry.after.topic} if entry.after.topic else moved
        if not wanted or not wanted <= moved:
            yield Violation(
                (*path, "after"), "nothing in the timeline asks for that move; allowed: after an entry with do: move …"
            )
    for action in entry.do:
        if isinstance(action, SetThrottle | Move) and action.rate_bytes_per_s == 0:
            yield Violation((*path, "do"), f"{action}: a throttle of nothing; allowed: 1B/s or more")


def _practices(form: IncidentForm) -> Iterator[Violation]:
    named = [entry.name for entry in form.timeline if entry.name]
    for index, entry in enumerate(form.timeline):
        if entry.name and entry.name in [other.name for other in form.timeline[:index]]:
            yield Violation(
                ("timeline", index, "name"), f"{entry.name} is the name of another entry; allowed: each once"
            )
    for name in form.remedy.replace:
        if name not in named:
            yield Violation(("remedy", "replace", name), _no("entry", name, named))
    for index, name in enumerate(form.remedy.drop):
        if name not in named or name in form.remedy.replace:
            text = "it is replaced already" if name in named else _no("entry", name, named)
            yield Violation(("remedy", "drop", index), text)
    for index, entry in enumerate(form.remedy.add):
        taken = [*named, *(other.name for other in form.remedy.add[:index])]
        if entry.name and entry.name in taken:
            text = f"{entry.name} is the name of another entry; allowed: each once"
            yield Violation(("remedy", "add", index, "name"), text)
    for name in form.remedy.parameters:
        if name not in form.parameters:
            yield Violation(("remedy", "parameters", name), _no("parameter", name, list(form.parameters)))
    expected = [*(expectation.name for entry in form.timeline for expectation in entry.expect), *ALWAYS]
    for index, name in enumerate(form.faulty.fails):
        if name not in expected:
            meant = "" if name in kinds() else did_you_mean(name, kinds())
            yield Violation(
                ("faulty", "fails", index),
                f"the timeline expects no {name}; allowed: {choices(expected)}{meant}",
            )


def _no(what: str, name: str, there: Iterable[str]) -> str:
    known = list(there)
    return f"there is no {what} {name}; allowed: {choices(known) if known else 'none'}{did_you_mean(name, known)}"
