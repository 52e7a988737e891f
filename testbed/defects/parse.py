"""Defects as text: `leader-throttle-leak@b1,b2:share=0.25`, and the options of the Java agent that follow from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from testbed.catalogue import discovered
from testbed.defects.defect import Defect
from testbed.errors import UsageError
from testbed.suggestions import choices, did_you_mean, existing
from testbed.topology.model import Topology

FORM = "NAME[@HOST[,HOST]][:key=value[,key=value]]"


@dataclass(frozen=True, slots=True)
class DefectRequest:
    """A defect as the user asks for it. Without hosts, all nodes of the defect's kind have it."""

    defect: Defect
    hosts: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    """The parameters that the user sets, in the order of the defect's parameters."""

    @property
    def option(self) -> str:
        """Return it as the Java agent reads it: `NAME,key=value`."""
        return ",".join([self.defect.name, *(f"{key}={value}" for key, value in self.values)])

    def __str__(self) -> str:
        where = f"@{','.join(self.hosts)}" if self.hosts else ""
        values = ",".join(f"{key}={value}" for key, value in self.values)
        return f"{self.defect.name}{where}" + (f":{values}" if values else "")


@cache
def defects() -> Mapping[str, Defect]:
    """Return every defect by name: the DEFECT of each module of `testbed.defects.catalogue`."""
    found: list[Defect] = list(discovered("testbed.defects.catalogue", "DEFECT").values())
    return {each.name: each for each in sorted(found, key=lambda each: (each.kind, each.name))}


def find_defect(name: str) -> Defect:
    """Return the defect of this name. Raise `UsageError` with the existing names when there is none."""
    return defects()[existing("defect", name, defects())]


def parse_defect(spec: str) -> DefectRequest:
    """Return the defect in a text. Raise `UsageError` with every mistake in it."""
    place, colon, settings = spec.strip().partition(":")
    name, at, hosts = place.partition("@")
    defect = find_defect(name)
    problems = []
    found = hosts.split(",") if at else []
    if not all(found) or len(set(found)) != len(found):
        problems.append(f"@{hosts}: expected names of hosts, each once, such as @b1,b2")
    values: dict[str, str] = {}
    for word in settings.split(",") if colon else ():
        key, equals, value = word.partition("=")
        known = [each.name for each in defect.parameters]
        parameter = defect.parameter(key)
        if not equals:
            problems.append(f"{word or 'nothing after the colon'}: expected key=value")
        elif parameter is None:
            has = f"it has {choices(known)}" if known else "it has none"
            problems.append(f"{word}: there is no parameter {key!r}, {has}{did_you_mean(key, known)}")
        elif key in values:
            problems.append(f"{word}: {key} is given twice")
        else:
            try:
                values[key] = parameter.checked(value)
            except ValueError as error:
                problems.append(f"{word}: {error}")
    if problems:
        raise UsageError("\n  ".join([f"defect {spec}: written as `{FORM}`", *problems]))
    ordered = tuple((each.name, values[each.name]) for each in defect.parameters if each.name in values)
    return DefectRequest(defect, tuple(found), ordered)


def by_host(specs: Sequence[str], topology: Topology) -> dict[str, tuple[str, ...]]:
    """Return host → the agent's options of its defects, for each host that has one.

    Raise `UsageError` when the topology lacks a host, the host has no node of the defect's kind, or a defect is twice
    on one host.
    """
    found: dict[str, tuple[str, ...]] = {}
    for request in map(parse_defect, specs):
        kind = request.defect.hosts
        able = [host.name for host in (topology.brokers if kind == "brokers" else topology.controllers)]
        for host in request.hosts:
            if host not in able:
                near = did_you_mean(host, able)
                raise UsageError(
                    f"defect {request}: {host} is none of the {kind} of {topology.name}, {choices(able)}{near}"
                )
        for host in request.hosts or able:
            if any(name_in(option) == request.defect.name for option in found.get(host, ())):
                raise UsageError(f"defect {request}: {host} has it twice")
            found[host] = (*found.get(host, ()), request.option)
    return {host.name: found[host.name] for host in topology.hosts if host.name in found}


def name_in(option: str) -> str:
    """Return the defect's name in an agent's option."""
    return option.partition(",")[0]


def in_words(defects_of: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each defect with its hosts: `leader-throttle-leak share=0.25 on b1, b2`."""
    hosts: dict[str, list[str]] = {}
    for host, options in defects_of.items():
        for option in options:
            hosts.setdefault(option, []).append(host)
    return [f"{option.replace(',', ' ')} on {', '.join(names)}" for option, names in hosts.items()]
