"""A defect that a broker had on purpose during a run, and whether it acted."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DefectRecord:
    """One defect of one host. A defect that never acted changed nothing in the run."""

    host: str
    name: str
    parameters: str = ""
    """The parameters that were given, as `key=value,…`; the others had their defaults."""
    acted: str | None = None
    """When the broker first did something wrong (UTC); None: it never did until the end of the run."""
    detail: str = ""
    """What it did first."""


def in_words(defects: Iterable[DefectRecord]) -> list[str]:
    """Return a line for each defect with its hosts, as `leader-throttle-leak share=0.25 on b1, b2 (b2 never acted)`."""
    hosts: dict[str, list[DefectRecord]] = {}
    for each in defects:
        hosts.setdefault(f"{each.name} {each.parameters.replace(',', ' ')}".rstrip(), []).append(each)
    lines = []
    for what, found in hosts.items():
        idle = [each.host for each in found if each.acted is None]
        never = f" ({', '.join(idle)} never acted)" if idle else ""
        lines.append(f"{what} on {', '.join(each.host for each in found)}{never}")
    return lines
