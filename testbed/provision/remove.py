"""Removing a testbed: by what runs under its label, not by what a file says it once was."""

import time
from concurrent.futures import ThreadPoolExecutor

from testbed.errors import TestbedError
from testbed.network.apply import devices_with_alias
from testbed.network.fabric import driver_device
from testbed.provision import state as states
from testbed.provision.containers import Engine, EngineGone, Found
from testbed.provision.disks import remove_disks
from testbed.provision.state import TestbedState
from testbed.throttle.journal import JournalFolder
from testbed.wait import wait_for

SETTLE_S = 1.0


def remove(engine: Engine, name: str) -> list[str]:
    """Remove every container, network, disk, link and file of testbed `name`; says what was removed.

    Removing what is not there is no error, so it can be repeated after a failure. What could not be removed is
    raised as one `TestbedError` after everything else has gone; the state stays then, for the next try.
    """
    engine.wait_answering()
    try:
        return _remove(engine, name)
    except EngineGone:
        engine.wait_answering()  # it went away in the middle: what it had still done is not known
        return _remove(engine, name)


def _remove(engine: Engine, name: str) -> list[str]:
    containers = _all_containers(engine, name)
    with ThreadPoolExecutor(max_workers=16) as pool:
        removals = [pool.submit(engine.remove_container, found.id) for found in containers]
    problems = [error for error in (removal.exception() for removal in removals) if error]
    removed = [f"container {found.host or found.role}" for found in containers]
    for network, _labels in engine.networks(name):
        try:
            engine.remove_network(network)
            removed.append("management network")
        except TestbedError as error:
            problems.append(error)
    try:
        removed += remove_disks(engine, name)
    except TestbedError as error:
        problems.append(error)
    for problem in problems:
        if isinstance(problem, EngineGone):
            raise problem
    if problems:
        raise TestbedError(f"testbed {name} is not wholly removed:\n  " + "\n  ".join(map(str, problems)))
    device = driver_device(name)
    # The kernel takes the fabric's links down some 100 ms after its last process.
    wait_for(
        lambda: devices_with_alias(f"testbed={name}"),
        lambda devices: device not in devices,
        timeout_s=10.0,
        interval_s=0.05,
        what=f"the link {device} of testbed {name} to go",
    )
    if states.folder(name).exists():
        state = _state(name)
        if state is not None and JournalFolder().forget_cluster(state.cluster_id):
            removed.append("the journal of a throttle")
        states.forget(name)
        removed.append("state and keys")
    return removed


def _all_containers(engine: Engine, name: str) -> list[Found]:
    """Every container of the testbed, also one that the engine is still making for a client that has died."""
    found = engine.containers(name)
    state = _state(name)
    if state is not None and state.status == "up":
        return found
    # An interrupted `up`: nothing tells when the engine is done with the dead client's last request.
    seen = {container.id: container for container in found}
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        time.sleep(0.1)
        seen |= {container.id: container for container in engine.containers(name)}
    return list(seen.values())


def _state(name: str) -> TestbedState | None:
    try:
        return states.load(name)
    except TestbedError:
        return None  # damaged: removed all the same
