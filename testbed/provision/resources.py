"""A testbed's resources in the engine and the kernel: allocation, list, garbage and removal.

Labels, owners and state decide together. The removal of a testbed follows the labels of its resources, not a file's
content.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from testbed.errors import TestbedError
from testbed.network.addresses import AddressPlan, free_slot
from testbed.network.apply import devices_with_alias, machine_networks
from testbed.network.fabric import driver_device
from testbed.network.overlay import HERE
from testbed.owner import Owner, is_dead
from testbed.paths import state_dir, throttle_journals
from testbed.provision import state as states
from testbed.provision.containers import (
    NAME,
    OWNER,
    SLOT,
    STATE,
    Engine,
    EngineGone,
    HostContainer,
    Labels,
    NetworkTaken,
)
from testbed.provision.engines import labels_on
from testbed.provision.fleet import engine_of_state
from testbed.provision.inventory.remains import remove_from_machines
from testbed.provision.machine import remove_disks
from testbed.provision.plan import fabric_spec, management_network
from testbed.provision.state import TestbedState
from testbed.wait import wait_for

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed


def allocate(engine: Engine, name: str, image: str) -> Labels:
    """Make the management network and the fabric's container, which reserve the slot."""
    with states.lock(".slots", wait=True):
        taken = {int(labels[SLOT]) for labels in _labels(engine) if labels.get(SLOT, "").isdigit()}
        routes = [*machine_networks(), *(each for shell in engine.shells.values() for each in machine_networks(shell))]
        used = [IPv4Network(network, strict=False) for network in routes]
        while True:
            try:
                slot = free_slot(taken, used)
            except LookupError as error:
                raise TestbedError(str(error)) from error
            labels = Labels(name, slot, Owner.this_process(), str(state_dir()))
            try:
                engine.create_network(
                    management_network(labels), AddressPlan(slot, ()).management, labels.of("management")
                )
            except NetworkTaken:
                taken.add(slot)
                continue
            for machine in engine.members:
                engine.create(fabric_spec(image, labels, machine))
            return labels


@dataclass(frozen=True, slots=True)
class ResourceSummary:
    """One line of `testbed ls`."""

    name: str
    status: str
    hosts: int
    created: str


def _labelled(engine: Engine) -> dict[str, list[Mapping[str, str]]]:
    """Return testbed → the labels of each of its resources."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for labels in _labels(engine):
        found.setdefault(labels[NAME], []).append(labels)
    return found


def _labels(engine: Engine) -> Iterator[Mapping[str, str]]:
    """Yield the labels of each container and of each network."""
    yield from (container.labels for container in engine.containers())
    yield from (labels for _id, labels in engine.networks())


def _elsewhere(resources: Iterable[Mapping[str, str]]) -> bool:
    """Return whether another state folder (another user's, a test's) owns these resources."""
    return any(labels.get(STATE) != str(state_dir()) for labels in resources)


def require_name(engine: Engine, name: str) -> None:
    """Raise `TestbedError` when another state folder has a testbed of this name: an engine has each name once."""
    found = _labelled(engine).get(name, [])
    if _elsewhere(found):
        folder = next(labels.get(STATE, "?") for labels in found if _elsewhere([labels]))
        raise TestbedError(
            f"the engine has a testbed {name} of another state folder, {folder}: give this one another name with "
            f"--name, or remove that one with `testbed down {name}`"
        )


def _is_own(labels: Mapping[str, str]) -> bool:
    """Return whether this state folder owns a resource, here or on another machine."""
    own = {STATE: str(state_dir())}
    return labels.get(STATE) in (own[STATE], labels_on("another", own)[STATE])


def known_here(engine: Engine) -> list[str]:
    """Return every testbed of this state folder: with state, with resources, or both."""
    labelled = _labelled(engine)
    return sorted({*states.names(), *(name for name, found in labelled.items() if not _elsewhere(found))})


def garbage(engine: Engine) -> dict[str, str]:
    """Return testbed → why it is garbage. Not garbage: permanent, being made, or another folder's."""
    found = garbage_on_machines()
    labelled = _labelled(engine)
    ran: dict[str, bool] = {}  # testbed → whether any of its containers still runs
    for container in engine.containers():
        ran[container.labels[NAME]] = ran.get(container.labels[NAME], False) or container.running
    for name in known_here(engine):
        try:
            state = states.load(name)
        except TestbedError:
            found[name] = "its state is damaged"
            continue
        if state is not None and state.machines:
            continue
        owners = {labels.get(OWNER, "") for labels in labelled.get(name, [])}
        if state is not None:
            owners.add(state.owner)
        if not all(map(is_dead, owners)):
            continue
        if state is None:
            found[name] = "the command that was making it is dead"
        elif why := _needed_no_more(state):
            found[name] = why
        elif name not in ran:
            found[name] = "its containers are gone"
        elif not ran[name]:
            found[name] = "all its containers have ended"
    return found


def garbage_on_machines() -> dict[str, str]:
    """Return testbed → why it is garbage, of testbeds on machines that exist. Needs no engine."""
    found = {}
    for name in states.names():
        state = _state_of(name)
        owner = Owner.parse(state.owner) if state is not None and state.machines else None
        if state is None or owner is None or owner.alive():
            continue
        if why := _needed_no_more(state):
            found[name] = why
    return found


def _needed_no_more(state: TestbedState) -> str:
    """Return why a testbed whose owner is dead is garbage; empty for one that stays up."""
    return state.interrupted or ("the run it was made for is dead" if state.ephemeral else "")


def collect_garbage(engine: Engine, *, dry_run: bool) -> Iterator[str]:
    """Remove every testbed that is garbage, and the files of unheld locks; return a line for each testbed.

    Raise one `TestbedError` for all that cannot be removed, after everything else is.
    """
    problems: list[str] = []
    try:
        yield from collect_testbeds(engine, "", problems, dry_run=dry_run)
        yield from _collected_helpers(engine, dry_run=dry_run)
    except TestbedError as error:
        problems.append(str(error))  # the engine does not answer
    if not dry_run:
        states.remove_unheld_locks()
    if problems:
        raise TestbedError("\n".join(problems))


def collect_testbeds(engine: Engine, prefix: str, problems: list[str], *, dry_run: bool = False) -> Iterator[str]:
    """Remove every testbed that is garbage and whose name begins with `prefix`; return a line for each.

    Append to `problems` what cannot be removed. Raise `TestbedError` when the engine does not answer, after testbeds on
    machines that exist, which need none.
    """
    on_machines = garbage_on_machines()
    yield from _collected(engine, garbage_on_machines, prefix, problems, dry_run=dry_run)
    yield from _collected(engine, lambda: garbage(engine), prefix, problems, without=on_machines, dry_run=dry_run)


def _collected_helpers(engine: Engine, *, dry_run: bool) -> Iterator[str]:
    for container in engine.helpers():
        owner = Owner.parse(container.labels.get(OWNER, ""))
        if container.labels.get(STATE) != str(state_dir()) or owner is None or owner.alive():
            continue
        if not dry_run:
            engine.remove_container(container.id)
        yield f"a container ({container.role}) of a dead command: {'would be ' if dry_run else ''}removed"


def _collected(
    engine: Engine,
    find: Callable[[], Mapping[str, str]],
    prefix: str,
    problems: list[str],
    *,
    without: Collection[str] = (),
    dry_run: bool,
) -> Iterator[str]:
    """Remove what `find` returns, and yield a line for each testbed; append to `problems` what cannot be removed."""
    for name, why in find().items():
        if name in without or not name.startswith(prefix):
            continue
        if dry_run:
            yield f"{name}: would be removed, {why}"
            continue
        try:
            with states.lock(name, wait=True):
                # Another command may have removed it, and made one of the same name, while this one waited. Another
                # state folder may have made one of the same name since an `up` here was killed.
                removed = remove(engine, name, own=True) if name in find() else None
        except EngineGone:
            raise  # each of the others would wait for the engine, too
        except TestbedError as error:
            problems.append(f"{name}: {error}")
            continue
        if removed is not None:
            yield f"{name}: {why}; removed {', '.join(removed)}"


def finish_restarts(attach: Callable[[str], "Testbed"], *, dry_run: bool) -> Iterator[str]:
    """Start Kafka where a command that was restarting it has died; return a line for each.

    Raise one `TestbedError` for all testbeds on which it cannot be started, after all others.
    """
    problems = []
    for name in states.names():
        state = _state_of(name)
        owner = Owner.parse(state.restarting) if state else None
        if state is None or state.status != "up" or owner is None or owner.alive():
            continue
        try:
            if not dry_run:
                with closing(attach(name)) as testbed:
                    testbed.reconfigure(state.overlay)
        except TestbedError as error:
            problems.append(f"{name}: {error}")
            continue
        yield f"{name}: Kafka {'would be ' if dry_run else ''}restarted, which a command was doing that is dead"
    if problems:
        raise TestbedError("\n".join(problems))


def overview(engine: Engine) -> list[ResourceSummary]:
    """Return all testbeds on the engine and in the state folder."""
    containers = engine.containers()
    dead = garbage(engine)
    labelled = _labelled(engine)
    rows = []
    for name in sorted({*labelled, *states.names()}):
        mine = [found for found in containers if found.labels.get(NAME) == name]
        hosts = [found for found in mine if found.role == "host"]
        state = _state_of(name)
        if name in dead:
            status = f"garbage: {dead[name]}"
        elif name in labelled and _elsewhere(labelled[name]):
            status = f"another state folder's: {labelled[name][0].get(STATE, '?')}"
        elif state is None or state.status == "creating":
            status = "being made"
        elif state.status == "removing":
            status = "being removed"
        else:
            status = "up" if all(found.running for found in mine) else "not whole"
        elsewhere = state is not None and (state.machines or state.machine_keys)
        count = len(state.topology["hosts"]) if state is not None and elsewhere else len(hosts)
        rows.append(ResourceSummary(name, status, count, state.created if state else ""))
    return rows


SETTLE_S = 1.0


def remove(engine: Engine, name: str, *, own: bool = False) -> list[str]:
    """Remove every container, network, disk, link and file of testbed `name`; return the names of those removed.

    With `own`, leave what another state folder has under this name. A missing resource is no error, so the removal can
    be repeated after a failure. Raise one `TestbedError` for all failures after everything else is removed; the state
    then stays for the next attempt.
    """
    state = _state_of(name)
    if state is not None and state.machines:
        _record_removal(state)
        return [*remove_from_machines(state), *_forget(name)]
    if state is not None and state.machine_keys and set(state.machine_keys) - set(engine.members):
        # The caller knows this machine's engine only.
        with closing(engine_of_state(state)) as every:
            return remove(every, name, own=own)
    engine.wait_answering()
    if state is not None:
        _record_removal(state)
    removed, problems = list[str](), list[str]()
    for machine, member in engine.members.items():
        try:
            removed += _removed(member, name, own)
        except TestbedError as error:
            problems.append(f"on machine {machine}: {error}" if machine else str(error))
    if problems:
        raise TestbedError(f"testbed {name} is not wholly removed:\n  " + "\n  ".join(problems))
    if own and _elsewhere(_labelled(engine.members[HERE]).get(name, [])):
        return [*removed, *_forget(name)]  # the link of this name is the other testbed's
    device = driver_device(name)
    # The kernel takes the fabric's links down some 100 ms after its last process.
    wait_for(
        lambda: devices_with_alias(f"testbed={name}"),
        lambda devices: device not in devices,
        timeout_s=10.0,
        interval_s=0.05,
        what=f"the link {device} of testbed {name} to go",
    )
    return [*removed, *_forget(name)]


def _record_removal(state: TestbedState) -> None:
    """Record that a testbed is being removed: after a kill of this process, `gc` continues."""
    if state.status == "up":
        with suppress(TestbedError):  # on a full disk the removal frees space
            states.save(replace(state, status="removing", owner=str(Owner.this_process())))


def _removed(engine: Engine, name: str, own: bool) -> list[str]:
    """Remove what one engine has of a testbed; try again when the engine stopped in the middle."""
    try:
        return _remove(engine, name, own)
    except EngineGone:
        engine.wait_answering()  # it stopped in the middle: the result of its last request is unknown
        return _remove(engine, name, own)


def _remove(engine: Engine, name: str, own: bool) -> list[str]:
    containers = [found for found in _all_containers(engine, name) if not own or _is_own(found.labels)]
    with ThreadPoolExecutor(max_workers=16) as pool:
        removals = [pool.submit(engine.remove_container, found.id) for found in containers]
    problems = [error for error in (removal.exception() for removal in removals) if error]
    removed = [f"container {found.host or found.role}" for found in containers]
    for network, labels in engine.networks(name):
        if own and not _is_own(labels):
            continue
        try:
            engine.remove_network(network)
            removed.append("management network")
        except TestbedError as error:
            problems.append(error)
    try:
        removed += remove_disks(engine, name) if engine.is_local else []
    except TestbedError as error:
        problems.append(error)
    for problem in problems:
        if isinstance(problem, EngineGone):
            raise problem
    if problems:
        raise TestbedError("\n  ".join(map(str, problems)))
    return removed


def _forget(name: str) -> list[str]:
    """Remove the files of a testbed that has no other resource; return their names."""
    removed = []
    if states.folder(name).exists():
        state = _state_of(name)
        if state is not None and _forget_throttles(state.cluster_id):
            removed.append("the journal of a throttle")
        states.forget(name)
        removed.append("state and keys")
    return removed


def _forget_throttles(cluster_id: str) -> bool:
    """Remove the throttle journals of a removed cluster; return whether there were any.

    A journal has the settings to restore in its cluster. An unreadable journal stays, for `reassign recover`.
    """
    removed = False
    for path in throttle_journals().glob("*.json"):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(document, dict) and document.get("cluster_id") == cluster_id:
            path.unlink(missing_ok=True)
            removed = True
    return removed


def _all_containers(engine: Engine, name: str) -> list[HostContainer]:
    """Return every container of the testbed, also one that the engine still makes for a dead client."""
    found = engine.containers(name)
    state = _state_of(name)
    if state is not None and state.status != "creating":
        return found
    # An interrupted `up`: no event marks the end of the engine's work for the dead client's last request.
    seen = {container.id: container for container in found}
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        time.sleep(0.1)
        seen |= {container.id: container for container in engine.containers(name)}
    return list(seen.values())


def _state_of(name: str) -> TestbedState | None:
    try:
        return states.load(name)
    except TestbedError:
        return None  # damaged: it is garbage, and removed all the same
