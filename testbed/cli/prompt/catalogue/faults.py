"""Commands about faults: every fault of the catalogue by its own name, or after its host or rack; and their heal."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING

from testbed.cli.prompt.grammar import PromptCommand, Values
from testbed.cli.prompt.session import Session
from testbed.cli.prompt.vocabulary import BIT_RATE_WORDS, Vocabulary, in_list
from testbed.errors import UsageError
from testbed.faults import Fault, FaultEntry, as_text, kinds, parse_fault
from testbed.faults.parameters import Direction, bit_rate
from testbed.faults.parse import parameters, usage
from testbed.topology.host import Role

_GROUP = "Faults"
_SUBJECTS = ("host", "hosts", "brokers", "rack")
"""The parameters that name what a fault is about."""
_PREFIXES = ("broker-", "nic-", "uplink-", "objectstore-")
DECLARED = "declared"


def subject_of(kind: type[Fault]) -> str | None:
    """Return the parameter that names the host or rack; None for a fault of the whole cluster."""
    return next((each.name for each in parameters(kind) if each.name in _SUBJECTS), None)


def short_name(kind: str) -> str:
    """Return `kill` for `broker-kill`."""
    return next((kind.removeprefix(prefix) for prefix in _PREFIXES if kind.startswith(prefix)), kind)


def fault_text(kind: type[Fault], subject: str, settings: str) -> str:
    """Return the fault in the catalogue's own words: `nic-rate host=b1 rate=50mbit` for `b1 rate 50mbit`.

    A value without a name is that of the next parameter that the fault needs.
    """
    about = subject_of(kind)
    needed = [each.name for each in parameters(kind) if each.default is MISSING and each.name != about]
    words = [] if about is None else [f"{about}={subject}"]
    for word in settings.split():
        name, equals, _value = word.partition("=")
        if equals:
            needed = [each for each in needed if each != name]
            words.append(word)
        else:
            words.append(f"{needed.pop(0)}={word}" if needed else word)
    return " ".join([kind.kind, *words])


def _by_name(kind: type[Fault]) -> PromptCommand:
    """Return the command of a fault by its own name; help lists it when the fault is about no host or rack."""

    def run(session: Session, values: Values) -> None:
        _add(session, parse_fault(f"{kind.kind} {_with_hosts(values.get(kind.kind, ''), session.names)}"))

    return PromptCommand(
        f"{kind.kind} [SETTINGS…]" if parameters(kind) else kind.kind,
        kind.summary,
        run,
        _parameters_text(kind),
        shown=usage(kind),
        group="" if subject_of(kind) else _GROUP,
        rest=lambda words, names: _setting_words(kind, None, words[1:], names),
    )


def _after_subject(kind: type[Fault], name: str, applies: Callable[[str, Vocabulary], bool]) -> PromptCommand:
    """Return the command of a fault after its host or rack; help lists it under its short name only."""
    about = subject_of(kind)
    settings = [each for each in parameters(kind) if each.name != about]

    def run(session: Session, values: Values) -> None:
        subject, given = values["subject"], values.get(name, "")
        if given == DECLARED:
            _heal_kind(session, kind, subject)
            return
        fault = parse_fault(fault_text(kind, subject, _with_hosts(given, session.names)))
        former = [entry for entry in session.faults.list() if replaces(fault, entry.fault) and entry.owner is None]
        _add(session, fault)
        for entry in former:
            session.faults.clear(entry.id)
            session.say(f"{entry.id}: {as_text(entry.fault)}, replaced")

    words = " ".join(f"{each.name.upper()}" if each.default is MISSING else f"[{each.name}=…]" for each in settings)
    subject = "RACK" if about == "rack" else "HOST"
    return PromptCommand(
        f"SUBJECT {name} [SETTINGS…]" if settings else f"SUBJECT {name}",
        kind.summary,
        run,
        _parameters_text(kind, without=about),
        shown=f"{subject} {name} {words}".rstrip(),
        group=_GROUP if name == short_name(kind.kind) else "",
        rest=lambda typed, names: _setting_words(kind, about, typed[2:], names),
        applies=applies,
    )


def replaces(new: Fault, old: Fault) -> bool:
    """Return whether a fault differs from an active one in what it needs only: another rate of the same NIC. Pure."""
    if type(new) is not type(old) or new == old:
        return False
    about = subject_of(type(new))
    same = [each.name for each in parameters(type(new)) if each.default is not MISSING or each.name == about]
    return len(same) < len(parameters(type(new))) and all(getattr(new, n) == getattr(old, n) for n in same)


def _with_hosts(settings: str, names: Vocabulary) -> str:
    """Return the settings with the hosts' own names in place of `broker-2`."""
    words = []
    for word in settings.split():
        name, equals, value = word.partition("=")
        if equals and name in (*_SUBJECTS, "peers"):
            value = ",".join(names.hosts.get(each, each) for each in value.split(","))
        words.append(f"{name}{equals}{value}")
    return " ".join(words)


def _add(session: Session, fault: Fault) -> None:
    fault.check(session.testbed.topology)
    begun = time.monotonic()
    added = session.faults.add(fault)
    effect = f"in effect after {time.monotonic() - begun:.1f} s"
    if fault.momentary:
        session.faults.clear(added)
        session.say(f"{added}: {as_text(fault)}, {effect}, and over")
    else:
        session.say(f"{added}: {as_text(fault)}, {effect}; `heal {added}` ends it")


def _heal_kind(session: Session, kind: type[Fault], subject: str) -> None:
    of_kind = [entry for entry in about_subject(session.faults.list(), subject) if isinstance(entry.fault, kind)]
    if not of_kind:
        raise UsageError(f"{subject} has no fault {kind.kind}: it is as declared")
    _heal_each(session, of_kind)


def about_subject(entries: Iterable[FaultEntry], subject: str) -> list[FaultEntry]:
    """Return the faults that name this host or rack as what they are about."""
    found = []
    for entry in entries:
        about = subject_of(type(entry.fault))
        value = None if about is None else getattr(entry.fault, about)
        if subject in ((value,) if isinstance(value, str) else value or ()):
            found.append(entry)
    return found


def _heal(session: Session, values: Values) -> None:
    what = values.get("heal")
    if what is None:
        healed = session.faults.clear()
        for entry in healed:
            session.say(f"{entry.id}: {as_text(entry.fault)}, healed")
        for entry in session.faults.list():
            active = f"{entry.id}: {as_text(entry.fault)}"
            session.say(f"{active}, not healed: it belongs to {entry.by}; `heal {entry.id}` heals it")
        if not healed:
            session.say("nothing to heal")
        return
    entries = session.faults.list()
    chosen = about_subject(entries, what) if isinstance(what, str) else [e for e in entries if e.id == what]
    if not chosen:
        raise UsageError(f"{what} has no fault: it is as declared")
    _heal_each(session, chosen)


def _heal_each(session: Session, entries: Iterable[FaultEntry]) -> None:
    for entry in entries:
        session.faults.clear(entry.id)
        session.say(f"{entry.id}: {as_text(entry.fault)}, healed")


def _list(session: Session, _values: Values) -> int:
    return session.command_line(["fault", "list", session.testbed.name])


# ---- completion and help


def _setting_words(kind: type[Fault], about: str | None, words: Sequence[str], names: Vocabulary) -> list[str]:
    """Return the completions of a fault's settings; the last of `words` has begun."""
    *before, typed = words
    given = {word.partition("=")[0] for word in before}
    open_parameters = [each for each in parameters(kind) if each.name != about and each.name not in given]
    key, equals, value = typed.partition("=")
    for each in open_parameters:
        if equals and each.name == key:
            return [f"{key}={word}" for word in _values(each.name, each.metadata["parse"], value, names)]
    found = [f"{each.name}=" for each in open_parameters]
    needed = [each for each in open_parameters if each.default is MISSING]
    if about is not None and needed and not before:
        found += [DECLARED, *_values(needed[0].name, needed[0].metadata["parse"], typed, names)]
    return found


def _values(name: str, parse: object, typed: str, names: Vocabulary) -> Iterable[str]:
    if name in ("host", "rack", "peers", "hosts", "brokers"):
        known = names.racks if name == "rack" else tuple(dict.fromkeys(names.hosts.values()))
        return known if name in ("host", "rack") else in_list(lambda _names: known)(typed, names)
    if name == "direction":
        return list(Direction)
    return BIT_RATE_WORDS(typed, names) if parse is bit_rate else ()


def _parameters_text(kind: type[Fault], without: str | None = None) -> str:
    return "\n".join(f"{each.name}: {each.metadata['help']}" for each in parameters(kind) if each.name != without)


def _applies(kind: type[Fault], short: bool) -> Callable[[str, Vocabulary], bool]:
    """Return whether a fault may be about a host or a rack. `objectstore-down` has the short name, not `nic-down`."""
    about, stores = subject_of(kind), kind.kind.startswith("objectstore-")

    def applies(subject: str, names: Vocabulary) -> bool:
        if names.declared is None or (about == "rack") != (subject in names.racks):
            return False
        if about == "rack":
            return True
        role = names.declared.host(subject).role
        if stores or kind.kind.startswith("broker-"):
            return role is Role.OBJECTSTORE if stores else role.runs_kafka
        clash = f"objectstore-{short_name(kind.kind)}" in kinds()
        return not (short and clash and role is Role.OBJECTSTORE)

    return applies


def _commands() -> list[PromptCommand]:
    found = [
        PromptCommand("faults", "the active faults", _list, group=_GROUP),
        PromptCommand(
            "heal [FAULT]",
            "heal one fault by its id, those of a host or rack, or all",
            _heal,
            "heal\nheal 3\nheal b1",
            shown="heal [ID|HOST|RACK]",
            group=_GROUP,
        ),
    ]
    for kind in kinds().values():
        found.append(_by_name(kind))
        if subject_of(kind) is not None:
            short = short_name(kind.kind)
            found.append(_after_subject(kind, short, _applies(kind, short=True)))
            if short != kind.kind:
                found.append(_after_subject(kind, kind.kind, _applies(kind, short=False)))
    return found


COMMANDS = _commands()
