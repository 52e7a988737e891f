"""The kernel's support for NICs: each kind of device or discipline is tried in its own network namespace.

Standard library only: set-up checks the kernel before the project's environment exists.
"""

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from testbed.software.engine import EngineError, EngineSocket, helper_labels
from testbed.software.image import local_image

PAIR = "ip link add t0 type veth peer name t1"
TRIALS = {
    "veth": PAIR,
    "bridge": "ip link add t2 type bridge",
    "htb": f"{PAIR} && tc qdisc add dev t0 root handle 1: htb default 10"
    " && tc class add dev t0 parent 1: classid 1:10 htb rate 100mbit burst 16k",
    "bfifo": f"{PAIR} && tc qdisc add dev t0 root bfifo limit 64k",
    "vxlan": "ip link add t3 type vxlan id 1 dstport 4789",
    "netem": f"{PAIR} && tc qdisc add dev t0 root netem delay 1ms",
}
TIMEOUT_S = 10.0
UNTRIED = "cannot be tried by this user"


def try_kind(kind: str) -> str:
    """Return why the kernel refuses this kind; "" when it does not.

    A user who is not root tries it in a user namespace; where these are not allowed, in a container of the engine.
    """
    if not lacking_capabilities():
        return _try(["unshare", "--net"], kind)
    refused = _try(["unshare", "--user", "--map-root-user", "--net"], kind)
    return _try_in_container(kind) if refused else ""


def _try(namespace: Sequence[str], kind: str) -> str:
    try:
        done = subprocess.run(
            [*namespace, "sh", "-c", TRIALS[kind]],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env={"PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {TIMEOUT_S:.0f} s"
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    return "" if done.returncode == 0 else _reason(done.stderr.splitlines(), done.returncode)


def _try_in_container(kind: str) -> str:
    engine = EngineSocket.from_environment()
    try:
        image = local_image(engine)
        if image is None:
            return f"{UNTRIED} before the node image is there"
        definition = {
            "Image": image.id,
            "Entrypoint": [],
            "Cmd": ["sh", "-c", TRIALS[kind]],
            "Labels": helper_labels("kernel"),
            "HostConfig": {"NetworkMode": "none", "CapAdd": ["NET_ADMIN"]},
        }
        with engine.container(definition) as container:
            said = list(container.output())
            status = container.wait(TIMEOUT_S)
    except EngineError as error:
        return f"{UNTRIED}: {error}"
    return "" if status == 0 else _reason(said, status)


def _reason(said: Sequence[str], status: int) -> str:
    lines = [line.strip() for line in said if line.strip()]
    return lines[0].removeprefix("Error: ").rstrip(".") if lines else f"exit code {status}"


NEEDED = {12: "CAP_NET_ADMIN", 21: "CAP_SYS_ADMIN"}
STATUS = Path("/proc/self/status")


@cache
def lacking_capabilities() -> tuple[str, ...]:
    """Return the capabilities that this process needs to enter and change network namespaces, and does not hold."""
    held = effective_capabilities(STATUS.read_text(encoding="ascii") if STATUS.exists() else "")
    return tuple(name for bit, name in NEEDED.items() if not held >> bit & 1)


def effective_capabilities(status: str) -> int:
    """Return the bits of CapEff in /proc/self/status; 0 without that line."""
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
