"""The kernel's support for NICs: each kind of device or discipline is tried in its own network namespace.

Standard library only: set-up checks the kernel before the project's environment exists.
"""

import subprocess
from functools import cache
from pathlib import Path

PAIR = "ip link add t0 type veth peer name t1"
TRIALS = {
    "veth": PAIR,
    "bridge": "ip link add t2 type bridge",
    "htb": f"{PAIR} && tc qdisc add dev t0 root handle 1: htb default 10"
    " && tc class add dev t0 parent 1: classid 1:10 htb rate 100mbit burst 16k",
    "bfifo": f"{PAIR} && tc qdisc add dev t0 root bfifo limit 64k",
    "netem": f"{PAIR} && tc qdisc add dev t0 root netem delay 1ms",
}
TIMEOUT_S = 10.0


def try_kind(kind: str) -> str:
    """Return why the kernel refuses this kind; "" when it does not."""
    try:
        done = subprocess.run(
            ["unshare", "--net", "sh", "-c", TRIALS[kind]],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env={"PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {TIMEOUT_S:.0f} s"
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[0].removeprefix("Error: ").rstrip(".") if lines else f"exit code {done.returncode}"


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
