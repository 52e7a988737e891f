"""The kernel's support for NICs: each kind of device or discipline is tried in its own network namespace.

Standard library only: set-up checks the kernel before the project's environment exists.
"""

import subprocess

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
