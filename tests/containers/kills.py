"""Commands killed at a point of their time, and everything that the machine may still have of them afterwards."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import docker

from testbed.paths import data_dir, state_dir
from testbed.provision.containers import NAME, STATE
from testbed.wait import WaitTimeout, wait_for
from tests.containers.conftest import ROOT, cli

MARK = "TESTBED_KILLED_BY"
GONE_S = 20.0
"""The kernel takes a namespace's links down a moment after its last process; a JVM ends when its parent has."""
TOPOLOGY = """\
name: killed
description: Two brokers, the first with a disk of its own, in two racks with an uplink.
kafka: {version: 4.3.1}
racks: {r1: {}, r2: {uplink: {rate: 300mbit}}}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both, rack: r1, disk: {size: 2GB}}
  b2: {role: broker, rack: r2}
"""
SHORT_RUN = ("run", "kip73-two-node", "--profile", "smoke", "--set", "preload=4s", "--set", "partitions=10")


@dataclass(frozen=True, slots=True)
class Killed:
    """One kill: of which command, when, at which of its steps, and what became of it."""

    command: str
    at_s: float
    stage: str
    """The last line of progress that it had told."""
    found: str
    """What `gc` said."""
    clean_s: float
    """From the kill until nothing was left, `gc` included."""
    left: tuple[str, ...]


def kill(words: tuple[str, ...], at_s: float, *, before: Counter[str], stays: str = "", own: bool = False) -> Killed:
    """Start `testbed WORDS`, kill it `at_s` later, collect; what is there now and was not there before is left.
    With `own` only what carries this state folder counts: other work is on the machine.

    A command that has ended by then is run again and killed in half the time. `stays` is a testbed that an `up` may
    have finished: it is taken down.
    """
    while True:
        mark = str(uuid.uuid4())
        process = subprocess.Popen(
            [sys.executable, "-m", "testbed.cli.main", *words],
            cwd=ROOT,
            env={**os.environ, MARK: mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(at_s)
        ended = process.poll()
        process.send_signal(signal.SIGKILL)
        begun = time.monotonic()
        _out, told = process.communicate()
        if ended is None:
            break
        assert ended in (0, 1, 2), told  # not killed, it does its work
        if words[0] == "up":
            assert cli("down", stays).returncode == 0
        at_s /= 2
    collected = cli("gc")
    assert collected.returncode == 0, (words, at_s, told, collected.stderr)
    if stays:
        # An `up` that was done, or a `down` that had not begun: it is up to stay.
        assert cli("down", stays).returncode == 0
    try:
        left = wait_for(
            lambda: everything(mark, own=own) - before,
            lambda found: not found,
            timeout_s=GONE_S,
            interval_s=0.05,
            what="nothing to be left",
        )
    except WaitTimeout as error:
        left = error.last_seen
    stage = [line for line in told.splitlines() if re.match(r" +\d+\.\d s  ", line)]
    return Killed(
        " ".join(words[:2]),
        round(at_s, 2),
        stage[-1].split("s  ", 1)[1] if stage else "nothing told yet",
        collected.stdout.strip(),
        round(time.monotonic() - begun, 2),
        tuple(left.elements()),
    )


def everything(mark: str = "", *, own: bool = False) -> Counter[str]:
    """All that a testbed is made of, wherever on this machine it is; and processes that carry `mark`.

    With `own`, of containers, networks, volumes and loop devices only those of this state folder; and a testbed's link
    that is of no container's testbed. Qdiscs and mounts go with those, and do not count.
    """
    found = _engine_and_kernel() if not own else _engine_and_kernel_of(str(state_dir()))
    found.update(f"process {line}" for line in _marked(mark) if mark)
    found.update(f"state {path.name}" for path in (state_dir() / "testbeds").glob("*"))
    found.update(f"throttle {path.name}" for path in (state_dir() / "reassign").glob("*.json"))
    found.update(f"commit {path.name}" for path in (state_dir() / "commits").glob("*"))
    store = data_dir() / "store"
    whole = {path.stem for path in store.glob("manifests/*.json")}
    found.update(f"half run {path.name}" for path in store.glob("runs/*") if path.name not in whole)
    found.update(f"half file {path.name}" for path in store.rglob("*.tmp"))
    found.update(f"half report {path.name}" for path in (data_dir() / "reports").glob("*.tmp"))
    return found


def _engine_and_kernel_of(state: str) -> Counter[str]:
    found: Counter[str] = Counter()
    mine = {"label": f"{STATE}={state}"}
    with contextlib.closing(docker.APIClient(version="auto")) as engine:
        found.update(f"container {each['Names'][0]}" for each in engine.containers(all=True, filters=mine))
        found.update(f"network {each['Name']}" for each in engine.networks(filters=mine))
        found.update(f"volume {each['Name']}" for each in engine.volumes(filters=mine)["Volumes"] or ())
        labels = [each["Labels"] for each in engine.containers(all=True, filters={"label": NAME})]
    others = {each[NAME] for each in labels if each[STATE] != state}
    links = json.loads(_output("ip", "-j", "link", "show"))
    aliases = [str(link.get("ifalias", "")) for link in links]
    found.update(
        f"link {each}" for each in aliases if each.startswith("testbed=") and each[8:].split()[0] not in others
    )
    # A testbed's link has its name a moment before its alias.
    bare = [link["ifname"] for link in links if "ifalias" not in link]
    found.update(f"link {each}" for each in bare if each.startswith("tb-"))
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            file = path.read_text().strip()
            found.update([f"loop device with {file}"] if file.startswith(state) else [])
    return found


def _engine_and_kernel() -> Counter[str]:
    found: Counter[str] = Counter()
    with contextlib.closing(docker.APIClient(version="auto")) as engine:
        found.update(f"container {each['Names'][0]}" for each in engine.containers(all=True))
        found.update(f"network {each['Name']}" for each in engine.networks())
        found.update(f"volume {each['Name']}" for each in engine.volumes()["Volumes"] or ())
    links = json.loads(_output("ip", "-j", "link", "show"))
    found.update(f"link {link['ifname']} {link.get('ifalias', '')}" for link in links)
    qdiscs = json.loads(_output("tc", "-j", "qdisc", "show"))
    found.update(f"qdisc {qdisc['kind']} on {qdisc['dev']}" for qdisc in qdiscs)
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            found[f"loop device with {path.read_text().strip()}"] += 1
    # The engine's file systems, and the network namespaces it holds.
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    found.update(f"mount {target}" for target in mounts if "/docker/" in target)
    return found


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def _marked(mark: str) -> list[str]:
    """Every process that was started with this mark, by a killed command or by what it had started."""
    wanted = f"{MARK}={mark}".encode()
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (process / "environ").read_bytes():
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                lines.append(f"{process.name} {command[:120]}")
    return lines


def on_hosts(testbed) -> Counter[str]:
    """What runs on the hosts of a testbed that stays, and what its cluster is told to hold back or to move."""
    found: Counter[str] = Counter()
    for name, host in testbed.hosts.items():
        # Not the shell that is asking, nor the server's process for it.
        listed = host.run("ps -eo comm=").stdout.split()
        found.update(f"{command} on {name}" for command in listed if command not in ("ps", "sh", "bash", "sshd"))
    with testbed.admin() as admin:
        for broker in testbed.topology.brokers:
            configs = admin.broker_configs(broker.node_id)
            found.update(f"{key} of {broker.name}" for key in configs.broker if "throttled" in key)
        found.update(f"move of {tp}" for tp in admin.reassignments())
    return found
