"""What the kernel can do, each feature tried in a network namespace of its own."""

import subprocess

from testbed.setup.debian import which
from testbed.setup.finding import Check, Finding

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


class _Kernel(Check):
    kinds: tuple[str, ...]
    consequence: str
    required = True

    def probe(self) -> Finding:
        """Try each kind; nothing of the machine's own network is touched."""
        if which("tc") is None or which("unshare") is None:
            return self.bad("cannot be tried before ip, tc and unshare are installed", required=self.required)
        refused = {kind: said for kind in self.kinds if (said := try_kind(kind))}
        if not refused:
            return self.good(f"has {', '.join(self.kinds)}")
        return self.bad(
            ", ".join(f"{kind} ({said})" for kind, said in refused.items()) + f": {self.consequence}",
            " && ".join(f"modprobe {_module(kind)}" for kind in refused),
            required=self.required,
        )


class Kernel(_Kernel):
    """What no NIC can do without."""

    name = "kernel"
    needs = ("packages", "permissions")
    kinds = ("veth", "bridge", "htb", "bfifo")
    consequence = "NICs cannot be made or shaped on this kernel"


class KernelDelay(_Kernel):
    """What only some topologies ask for."""

    name = "kernel: delay and loss"
    needs = ("packages", "permissions")
    kinds = ("netem",)
    consequence = "delay and loss cannot be declared on this machine; rates can"
    required = False


def try_kind(kind: str) -> str:
    """Why the kernel refuses this kind; "" when it does not."""
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


def _module(kind: str) -> str:
    return kind if kind in ("veth", "bridge") else f"sch_{kind.replace('bfifo', 'fifo')}"
