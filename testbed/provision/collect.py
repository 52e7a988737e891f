"""What there is, and what of it is garbage: decided by labels, owners and state together."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.errors import TestbedError
from testbed.owner import Owner
from testbed.paths import state_dir
from testbed.provision import state as states
from testbed.provision.containers import Engine
from testbed.provision.labels import NAME, OWNER, STATE
from testbed.provision.remove import remove

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `testbed ls`."""

    name: str
    status: str
    hosts: int
    created: str


def _labelled(engine: Engine) -> dict[str, list[Mapping[str, str]]]:
    """Testbed → the labels of each of its resources, containers and networks alike."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for labels in (
        *(container.labels for container in engine.containers()),
        *(labels for _id, labels in engine.networks()),
    ):
        found.setdefault(labels[NAME], []).append(labels)
    return found


def _elsewhere(resources: list[Mapping[str, str]]) -> bool:
    """Whether another state folder (another user's, a test's) answers for these."""
    return any(labels.get(STATE) != str(state_dir()) for labels in resources)


def known_here(engine: Engine) -> list[str]:
    """Every testbed this state folder answers for: with state, with resources, or both."""
    labelled = _labelled(engine)
    return sorted({*states.names(), *(name for name, found in labelled.items() if not _elsewhere(found))})


def garbage(engine: Engine) -> dict[str, str]:
    """Testbed → why it is garbage. Never one that is up to stay, being made right now, or somebody else's."""
    labelled = _labelled(engine)
    ran: dict[str, bool] = {}
    """Whether any of its containers still runs."""
    for container in engine.containers():
        ran[container.labels[NAME]] = ran.get(container.labels[NAME], False) or container.running
    found: dict[str, str] = {}
    for name in known_here(engine):
        try:
            state = states.load(name)
        except TestbedError:
            found[name] = "its state is damaged"
            continue
        owners = {labels.get(OWNER, "") for labels in labelled.get(name, [])}
        if state is not None:
            owners.add(state.owner)
        alive = any(owner.alive() for owner in map(Owner.parse, owners) if owner is not None)
        if alive:
            continue
        if state is None:
            found[name] = "the command that was making it is dead"
        elif state.status != "up":
            found[name] = "its `up` was interrupted"
        elif state.ephemeral:
            found[name] = "the run it was made for is dead"
        elif name not in ran:
            found[name] = "its containers are gone"
        elif not ran[name]:
            found[name] = "all its containers have ended"
    return found


def collect_garbage(engine: Engine, *, dry_run: bool) -> Iterator[str]:
    """Remove every testbed that is garbage; a line for each."""
    for name, why in garbage(engine).items():
        if dry_run:
            yield f"{name}: would be removed, {why}"
            continue
        with states.lock(name, wait=True):
            removed = remove(engine, name)
        yield f"{name}: {why}; removed {', '.join(removed)}"


def finish_restarts(attach: Callable[[str], "Testbed"], *, dry_run: bool) -> Iterator[str]:
    """Start Kafka where a command that was restarting it has died; a line for each."""
    for name in states.names():
        try:
            state = states.load(name)
        except TestbedError:
            continue  # damaged: it is garbage
        owner = Owner.parse(state.restarting) if state else None
        if state is None or state.status != "up" or owner is None or owner.alive():
            continue
        if not dry_run:
            testbed = attach(name)
            try:
                testbed.reconfigure(state.overlay)
            finally:
                testbed.close()
        yield f"{name}: Kafka {'would be ' if dry_run else ''}restarted, which a command was doing that is dead"


def overview(engine: Engine) -> list[Row]:
    """All testbeds on the engine and in the state folder."""
    containers = engine.containers()
    dead = garbage(engine)
    labelled = _labelled(engine)
    rows = []
    for name in sorted({*labelled, *states.names()}):
        mine = [found for found in containers if found.labels.get(NAME) == name]
        hosts = [found for found in mine if found.host]
        try:
            state = states.load(name)
        except TestbedError:
            state = None
        if name in dead:
            status = f"garbage: {dead[name]}"
        elif name in labelled and _elsewhere(labelled[name]):
            status = f"another state folder's: {labelled[name][0].get(STATE, '?')}"
        elif state is None or state.status == "creating":
            status = "being made"
        else:
            status = "up" if all(found.running for found in mine) else "not whole"
        rows.append(Row(name, status, len(hosts), state.created if state else ""))
    return rows
