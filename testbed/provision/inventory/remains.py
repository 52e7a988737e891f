"""The remains of a testbed on machines that exist, found by its state: whether it still runs, and their removal."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from testbed.errors import TestbedError
from testbed.hosts import SshHost
from testbed.hosts.host import in_parallel
from testbed.owner import BOOT_ID
from testbed.provision import state as states
from testbed.provision.inventory.survey import ask
from testbed.topology import load_document

if TYPE_CHECKING:
    from testbed.provision.state import TestbedState

T = TypeVar("T")
CONNECT_S = 8.0


def machines_not_whole(state: "TestbedState") -> str:
    """Return which machines do not answer, or were restarted since `up`; empty when all are as they were."""

    found = []
    for name, boot in boots(state).items():
        if boot is None:
            found.append(f"{name} does not answer")
        elif boot != state.machines[name].boot:
            found.append(f"{name} was restarted")
    return "; ".join(found)


def boots(state: "TestbedState") -> dict[str, str | None]:
    """Return the identity of each machine's present boot; None of a machine that does not answer."""

    def ask_boot(host: SshHost) -> str | None:
        try:
            return host.run(f"cat {BOOT_ID}").stdout.strip()
        except TestbedError:
            return None

    return dict(zip(state.machines, _on_each(state, ask_boot), strict=True))


def remove_from_machines(state: "TestbedState") -> list[str]:
    """Remove the testbed from every machine, and return what was removed. It can be repeated after a failure.

    Raise one `TestbedError` for all machines that do not answer or refuse, after the others are done.
    """
    topology = load_document(dict(state.topology))
    problems: list[str] = []

    def clean(host: SshHost) -> list[str]:
        machine, access = state.machines[host.name], topology.host(host.name).access
        config = {
            "home": machine.home,
            "mark": machine.mark,
            "software": machine.software,
            "keep": access.keep_software,
        }
        try:
            return list(ask(host, "remove", config, sudo=access.sudo)["removed"])
        except TestbedError as error:
            problems.append(str(error))
            return []

    found = _on_each(state, clean)
    if problems:
        raise TestbedError(
            f"testbed {state.name} is not wholly removed; `testbed down {state.name}` continues once all machines "
            "answer:\n  " + "\n  ".join(problems)
        )
    return [f"{what} on {host}" for host, removed in zip(state.machines, found, strict=True) for what in removed]


def _on_each(state: "TestbedState", work: Callable[[SshHost], T]) -> list[T]:
    """Return the results of `work` on all machines at once, in the topology's order."""
    topology = load_document(dict(state.topology))
    hosts = states.machine_hosts(state, topology, connect_timeout_s=CONNECT_S, relocated=False)
    try:
        return in_parallel([hosts[name] for name in state.machines], work)
    finally:
        for host in hosts.values():
            host.close()
