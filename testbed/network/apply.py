"""Running what was rendered, in the network namespace of a process. Needs root on the engine's machine."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from testbed.errors import TestbedError
from testbed.network.fabric import Script
from testbed.network.shape import Shape, class_show_command, parse_shape, qdisc_show_command


class NetworkError(TestbedError):
    """`ip`, `tc` or `ethtool` refused a line."""


def _in_namespace(pid: int | None, command: Sequence[str]) -> list[str]:
    if pid is None:
        return list(command)
    return ["nsenter", f"--net=/proc/{pid}/ns/net", "--", *command]


def _run(pid: int | None, command: Sequence[str], *, lines: Sequence[str] = ()) -> str:
    try:
        done = subprocess.run(
            _in_namespace(pid, command),
            input="\n".join(lines) + "\n" if lines else "",
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except FileNotFoundError as error:
        raise NetworkError(f"{error.filename} is not installed: run `testbed doctor --fix`") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-1000:]
        told = "".join(f"\n    {line}" for line in lines)
        raise NetworkError(f"`{' '.join(command)}` ended with status {done.returncode}: {said}{told}")
    return done.stdout


def apply(script: Script, pid: int | None = None) -> None:
    """Run a script in the namespace of process `pid`, or in the machine's own. Raises `NetworkError`."""
    if script.ip:
        _run(pid, ["ip", "-batch", "-"], lines=script.ip)
    if script.commands:
        # One shell instead of one process per device; `-e` makes the first failure the result.
        _run(pid, ["sh", "-e", "-s"], lines=[" ".join(command) + " >/dev/null" for command in script.commands])
    if script.tc:
        _run(pid, ["tc", "-batch", "-"], lines=script.tc)


def read_shape(device: str, pid: int | None = None) -> Shape | None:
    """What the kernel says about a device's shaping now; None when it is not shaped."""
    qdiscs: list[Any] = json.loads(_run(pid, qdisc_show_command(device)) or "[]")
    return parse_shape(qdiscs, _run(pid, class_show_command(device)))


def machine_networks() -> list[str]:
    """Every IPv4 network the machine has a route to, in CIDR notation (without the default route)."""
    routes: list[dict[str, Any]] = json.loads(_run(None, ["ip", "-j", "-4", "route", "show", "table", "all"]) or "[]")
    found = []
    for route in routes:
        destination = str(route.get("dst", "default"))
        if destination != "default" and route.get("type", "unicast") in ("unicast", "local"):
            found.append(destination if "/" in destination else destination + "/32")
    return found


def devices_with_alias(prefix: str) -> dict[str, str]:
    """Devices of the machine's own namespace whose alias begins with `prefix`: name → alias."""
    links: list[dict[str, Any]] = json.loads(_run(None, ["ip", "-j", "link", "show"]) or "[]")
    return {
        str(link["ifname"]): str(link["ifalias"]) for link in links if str(link.get("ifalias", "")).startswith(prefix)
    }
