"""Faults whose processes died before they could heal them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from testbed.errors import TestbedError
from testbed.faults.faults import Faults
from testbed.faults.journal import Entry, FaultJournal
from testbed.faults.parse import as_text
from testbed.provision import state as states

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed


def heal_leftovers(testbed: "Testbed", progress: Callable[[str], None]) -> None:
    """Heal what dead processes left on `testbed`, and tell what remains. Raises `TestbedError`."""
    faults = Faults(testbed)
    for entry in faults.clear_dead():
        progress(f"healed {as_text(entry.fault)}: whoever put it in is dead")
    for entry in faults.list():
        whose = f"process {entry.owner.pid}" if entry.owner else "by hand"
        progress(f"fault {entry} is active, put in {whose}: `testbed fault clear {testbed.name} {entry.id}` heals it")


def collect_faults(attach: Callable[[str], "Testbed"], *, dry_run: bool) -> list[str]:
    """Heal the leftovers of every testbed that is up; says what was done, a line each.

    Raises `TestbedError` with everything that could not be healed, after everything else was.
    """
    said, problems = [], []
    for name in states.names():
        try:
            what = ", ".join(as_text(entry.fault) for entry in _dead(name))
            if not what:
                continue
            if not dry_run:
                _heal_dead(attach(name))
            said.append(f"{name}: {'would be ' if dry_run else ''}healed of {what}, whose process is dead")
        except TestbedError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise TestbedError("\n".join([*said, *problems]))
    return said


def _dead(name: str) -> list[Entry]:
    state = states.load(name)
    up = state is not None and state.status == "up"
    return [entry for entry in FaultJournal(name).entries() if entry.dead] if up else []


def _heal_dead(testbed: "Testbed") -> None:
    try:
        Faults(testbed).clear_dead()
    finally:
        testbed.close()
