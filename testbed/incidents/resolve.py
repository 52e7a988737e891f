"""From the form of a file to one practice of an incident. Pure; the form has been checked."""

from collections.abc import Mapping
from typing import Any

from testbed.document import Path
from testbed.incidents.model import Entry, Incident, InitialThrottle, Load, Practice, State, TopicState
from testbed.incidents.rules import Placed
from testbed.incidents.surface import EntryForm, IncidentForm, TopicForm
from testbed.incidents.trigger import At, Trigger
from testbed.topology.model import Topology


def entries_of(form: IncidentForm, practice: Practice) -> list[Placed]:
    """The entries of a practice, each with its place in the file."""
    entries: list[Placed] = [(("timeline", index), entry) for index, entry in enumerate(form.timeline)]
    if practice == "faulty":
        return entries
    remedy = form.remedy
    kept: list[Placed] = []
    for path, entry in entries:
        if entry.name in remedy.replace:
            # The replacement keeps the name, so that a report of both practices can be laid side by side.
            other = remedy.replace[entry.name]
            kept.append((("remedy", "replace", entry.name), other.model_copy(update={"name": entry.name})))
        elif entry.name not in remedy.drop:
            kept.append((path, entry))
    return [*kept, *((("remedy", "add", index), entry) for index, entry in enumerate(remedy.add))]


def resolve(
    form: IncidentForm,
    practice: Practice,
    topology: Topology,
    entries: list[Placed],
    parameters: Mapping[str, str],
    document: Mapping[str, Any],
) -> Incident:
    """Everything that the file leaves out, filled in."""
    state, throttle = form.state, form.state.throttle
    return Incident(
        name=form.name,
        practice=practice,
        summary=form.summary,
        practice_summary=(form.faulty if practice == "faulty" else form.remedy).summary,
        topology=topology,
        state=State(
            tuple(_topic(name, topic) for name, topic in state.topics.items()),
            dict(state.properties or {}),
            InitialThrottle(throttle.rate, tuple(throttle.topics)) if throttle else None,
        ),
        load=Load(form.load.produce, form.load.to, form.load.record_size) if form.load else None,
        entries=tuple(_entry(path, entry, form.lasts) for path, entry in entries),
        lasts_s=form.lasts,
        settle_s=form.settle,
        fails=tuple(form.faulty.fails) if practice == "faulty" else (),
        parameters=dict(parameters),
        reference=form.reference or "",
        document=dict(document),
    )


def _topic(name: str, form: TopicForm) -> TopicState:
    in_all = form.records if form.records is not None else -(-(form.size or 0) // form.record_size)
    return TopicState(
        name,
        tuple(form.replicas[partition % len(form.replicas)] for partition in range(form.partitions)),
        -(-in_all // form.partitions),
        form.record_size,
        dict(form.configs or {}),
    )


def _entry(path: Path, form: EntryForm, lasts_s: float) -> Entry:
    trigger: Trigger = form.when or form.after or At(form.at or 0.0)
    return Entry(
        name=form.name or _name(path),
        trigger=trigger,
        actions=tuple(form.do),
        expectations=tuple(form.expect),
        deadline_s=form.within if form.within is not None else lasts_s,
        delay_s=form.delay,
        optional=form.optional,
        place=path,
    )


def _name(path: Path) -> str:
    """What an entry without a name is called: `entry 3`, counted from 1."""
    last = path[-1]
    return f"{'added ' if path[0] == 'remedy' else 'entry '}{last + 1}" if isinstance(last, int) else str(last)
