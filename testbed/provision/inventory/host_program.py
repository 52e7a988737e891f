"""The program that the testbed runs on a machine that exists. Standard library only; the driver sends its text.

    host_program.py survey  CONFIG    what the machine has; changes nothing
    host_program.py reach   CONFIG    which addresses answer; changes nothing
    host_program.py begin   CONFIG    makes the testbed's folder
    host_program.py shape   CONFIG    saves the state of the NICs, starts the rollback, shapes
    host_program.py confirm CONFIG    ends the rollback: the driver still reaches the machine
    host_program.py timer   CONFIG    (started by shape) restores the NICs unless they are confirmed in time
    host_program.py remove  CONFIG    ends the testbed's processes, restores the NICs, removes its files

CONFIG is JSON. The answer is one JSON document on standard output. Every step can be repeated.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any

MARKER = ".testbed"
"""The file in the testbed's folder that contains its mark: no other folder is ever removed."""
PENDING, CONFIRMED, EXPIRED = "shaping.pending", "shaping.confirmed", "shaping.expired"
"""The journal of the NICs' state: the driver and the rollback each rename it, and only one of them can."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OFFLOADS = {"tso": "tcp-segmentation-offload", "gso": "generic-segmentation-offload", "gro": "generic-receive-offload"}
KINDS = {
    "ifb": [("ifb_xmit", "ifb")],
    "htb": [("htb_enqueue", "sch_htb")],
    "bfifo": [("bfifo_enqueue", "sch_fifo")],
    "redirection": [("ingress_init", "sch_ingress"), ("u32_classify", "cls_u32"), ("tcf_mirred_act", "act_mirred")],
    "netem": [("netem_enqueue", "sch_netem")],
}
"""Function of the kernel and module, by which a kind is found where no network namespace can be made for a trial."""


def run(words: list[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command and return it finished, whatever its status."""
    env = dict(os.environ, LC_ALL="C")
    try:
        return subprocess.run(words, input=text, capture_output=True, text=True, timeout=30, check=False, env=env)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(words, 127, "", str(error))


def must(words: list[str], text: str | None = None) -> str:
    """Run a command and return its output. Raise RuntimeError on another status than 0."""
    done = run(words, text)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-500:]
        raise RuntimeError("`%s` ended with status %d: %s" % (" ".join(words), done.returncode, said))
    return done.stdout


def read(path: str) -> str:
    """Return a file's text; empty when it cannot be read."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def boot_id() -> str:
    """Return the identity of the machine's present boot."""
    return read("/proc/sys/kernel/random/boot_id").strip()


# ---- survey


def javas(wanted: str | None) -> list[dict[str, Any]]:
    """Return the Javas of the machine: home and major version; with `wanted` only that home."""
    homes = [wanted] if wanted else []
    if not wanted:
        command = shutil.which("java", path=PATH)
        if command:
            homes.append(os.path.dirname(os.path.dirname(os.path.realpath(command))))
        if os.environ.get("JAVA_HOME"):
            homes.append(os.environ["JAVA_HOME"])
        for parent in ("/usr/lib/jvm", "/opt", "/usr/java"):
            if os.path.isdir(parent):
                homes += [os.path.join(parent, name) for name in sorted(os.listdir(parent))]
    found = []
    for home in dict.fromkeys(os.path.realpath(each) for each in homes):
        program = os.path.join(home, "bin", "java")
        if os.access(program, os.X_OK):
            said = run([program, "-XX:-UsePerfData", "-version"]).stderr
            match = re.search(r'version "(?:1\.)?(\d+)', said)
            if match:
                found.append({"home": home, "major": int(match.group(1))})
    return found


def kernel_lacks(trials: dict[str, str]) -> dict[str, str]:
    """Return kind → why the kernel refuses it; empty for a kind that it has.

    Each kind is tried in a network namespace of its own. Where that is not permitted, the kernel's symbols and modules
    say it.
    """
    found = {}
    permitted = run(["unshare", "--net", "true"]).returncode == 0
    symbols = "" if permitted else read("/proc/kallsyms")
    folder = "/lib/modules/%s/" % os.uname().release
    modules = read(folder + "modules.dep") + read(folder + "modules.builtin")
    for kind, trial in trials.items():
        if permitted:
            done = run(["unshare", "--net", "sh", "-c", trial])
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            found[kind] = "" if done.returncode == 0 else (lines or ["status %d" % done.returncode])[0]
        elif not symbols:
            found[kind] = ""  # unknown: `shape` finds it, and restores what it did before
        else:
            lacking = [name for symbol, name in KINDS[kind] if symbol not in symbols and "/%s.ko" % name not in modules]
            found[kind] = "the kernel has no %s" % ", ".join(lacking) if lacking else ""
    return found


def listeners() -> dict[int, str]:
    """Return port → process of every TCP socket that listens on this machine."""
    inodes: dict[str, int] = {}
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in read(path).splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                inodes[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    found = dict.fromkeys(inodes.values(), "a process that cannot be seen")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for number in os.listdir("/proc/%s/fd" % pid):
                target = os.readlink("/proc/%s/fd/%s" % (pid, number))
                port = inodes.get(target[8:-1]) if target.startswith("socket:[") else None
                if port is not None:
                    found[port] = "%s (process %s)" % (read("/proc/%s/comm" % pid).strip(), pid)
        except OSError:
            continue  # it has ended, or it is another user's
    return found


def device(name: str) -> dict[str, Any] | None:
    """Return a network device's state, MTU, IPv4 addresses and disciplines; None when there is none."""
    links = json.loads(run(["ip", "-j", "addr", "show", "dev", name]).stdout or "[]")
    if not links:
        return None
    addresses = [each["local"] for each in links[0].get("addr_info", []) if each.get("family") == "inet"]
    qdiscs = json.loads(run(["tc", "-j", "qdisc", "show", "dev", name]).stdout or "[]")
    return {
        "up": "UP" in links[0].get("flags", []),
        "mtu": links[0].get("mtu", 0),
        "queue": links[0].get("txqlen", 0),
        "addresses": addresses,
        "qdiscs": [each for each in qdiscs if each.get("dev", name) == name],
    }


def disk(folder: str) -> dict[str, Any]:
    """Return whether a folder exists and can be written to, and its free bytes."""
    if not os.path.isdir(folder):
        return {"exists": False, "writable": False, "free": 0}
    stat = os.statvfs(folder)
    return {"exists": True, "writable": os.access(folder, os.W_OK), "free": stat.f_bavail * stat.f_frsize}


def survey(config: dict[str, Any]) -> dict[str, Any]:
    """Return everything that the preflight judges. Change nothing."""
    taken = listeners()
    system = dict(line.split("=", 1) for line in read("/etc/os-release").splitlines() if "=" in line)
    return {
        "root": os.geteuid() == 0,
        "python": "%d.%d" % sys.version_info[:2],
        "programs": {name: shutil.which(name, path=PATH) or "" for name in config["programs"]},
        "java": javas(config.get("java")),
        "kernel": kernel_lacks(config["trials"]),
        "disk": disk(config["folder"]),
        "ports": {str(port): taken[port] for port in config["ports"] if port in taken},
        "devices": {name: device(name) for name in config["devices"]},
        "boot": boot_id(),
        "system": system.get("PRETTY_NAME", "?").strip('"'),
        "release": os.uname().release,
        "cores": os.cpu_count() or 1,
    }


def reach(config: dict[str, Any]) -> dict[str, Any]:
    """Return the addresses that do not answer: neither with a connection nor with a refusal."""
    silent = {}
    for address, port in config["addresses"]:
        try:
            socket.create_connection((address, port), timeout=config["timeout_s"]).close()
        except ConnectionRefusedError:
            continue
        except OSError as error:
            silent[address] = str(error) or errno.errorcode.get(error.errno or 0, "?")
    return {"silent": silent}


# ---- shaping


def offloads(name: str) -> dict[str, str]:
    """Return the segmentation offloads of a device that can be changed: short name → on or off."""
    said = run(["ethtool", "-k", name]).stdout
    found = {}
    for short, long in OFFLOADS.items():
        match = re.search(r"^%s: (on|off)( \[fixed\])?$" % re.escape(long), said, re.MULTILINE)
        if match and not match.group(2):
            found[short] = match.group(1)
    return found


def segments(name: str) -> int | None:
    """Return the most segments that a device takes in one packet; None when `ip` does not report it."""
    links = json.loads(run(["ip", "-d", "-j", "link", "show", "dev", name]).stdout or "[{}]")
    value = links[0].get("gso_max_segs")
    return int(value) if value else None


def save(path: str, document: dict[str, Any]) -> None:
    """Write a JSON file durably."""
    with open(path + ".partial", "w") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".partial", path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def shape(config: dict[str, Any]) -> dict[str, Any]:
    """Save the NICs' state, start the rollback, and shape; undo it at once when a step fails."""
    home = config["home"]
    journal: dict[str, Any] = {"boot": boot_id(), "devices": []}
    for each in config["devices"]:
        name = each["device"]
        there = device(name)
        if there is None:
            raise RuntimeError("there is no device %s" % name)
        foreign = [
            "%s %s" % (qdisc["kind"], qdisc["handle"]) for qdisc in there["qdiscs"] if qdisc.get("handle", "0:") != "0:"
        ]
        if foreign:
            raise RuntimeError("%s was shaped in the meantime: %s" % (name, ", ".join(foreign)))
        before = {"offloads": offloads(name), "segments": segments(name), "mtu": there["mtu"], "queue": there["queue"]}
        journal["devices"].append({"device": name, "entry": each["entry"], **before})
    save(os.path.join(home, PENDING), journal)
    timer = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), "timer", json.dumps({"home": home, "seconds": config["seconds"]})],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    try:
        for each, before in zip(config["devices"], journal["devices"]):
            name, entry = each["device"], each["entry"]
            must(["ip", "link", "add", "name", entry, "type", "ifb"])
            must(["ip", "link", "set", "dev", entry, "alias", config["alias"]])
            must(["ip", "link", "set", "dev", entry, "mtu", str(before["mtu"]), "up"])
            changed = [word for short in before["offloads"] for word in (short, "off")]
            if changed:
                must(["ethtool", "-K", name, *changed])
            if each["frames"] and before["segments"]:
                must(["ip", "link", "set", "dev", name, "gso_max_segs", "1"])
            must(["tc", "-batch", "-"], "\n".join(each["tc"]) + "\n")
    except RuntimeError:
        restore(os.path.join(home, PENDING))
        timer.kill()
        raise
    return {"timer": timer.pid}


def confirm(config: dict[str, Any]) -> dict[str, Any]:
    """End the rollback. Raise RuntimeError when it has restored the NICs already."""
    home = config["home"]
    try:
        os.rename(os.path.join(home, PENDING), os.path.join(home, CONFIRMED))
    except FileNotFoundError:
        raise RuntimeError("the rollback has restored the NICs: the driver was not heard in time") from None
    return {}


def timer(config: dict[str, Any]) -> dict[str, Any]:
    """Wait, then restore the NICs unless the driver has confirmed them."""
    pending, expired = (os.path.join(config["home"], name) for name in (PENDING, EXPIRED))
    deadline = time.monotonic() + config["seconds"]
    while time.monotonic() < deadline:
        if not os.path.exists(pending):
            return {}
        time.sleep(0.2)
    try:
        os.rename(pending, expired)
    except FileNotFoundError:
        return {}
    restore(expired)
    return {}


def restore(path: str) -> list[str]:
    """Restore the NICs of a journal, whatever was done of it; return what was removed, and what was left as foreign."""
    journal = json.loads(read(path) or "{}")
    if journal.get("boot") != boot_id():
        return []  # the kernel has forgotten everything since
    done = []
    for each in journal["devices"]:
        name, entry = each["device"], each["entry"]
        there = device(name)
        for qdisc in there["qdiscs"] if there else []:
            kind, handle = qdisc["kind"], qdisc.get("handle", "0:")
            if kind == "ingress" and handle == "ffff:":
                must(["tc", "qdisc", "del", "dev", name, "ingress"])
                done.append("what %s receives is not redirected" % name)
            elif qdisc.get("root") and ((kind == "htb" and handle == "1:") or (kind == "pfifo" and handle != "0:")):
                must(["tc", "qdisc", "del", "dev", name, "root"])
                done.append("the shaping of %s" % name)
        if device(entry) is not None:
            must(["ip", "link", "del", "dev", entry])
            done.append("the device %s" % entry)
        changed = [word for short, value in each["offloads"].items() for word in (short, value)]
        if there and changed:
            must(["ethtool", "-K", name, *changed])
        if there and there["queue"] != each["queue"]:
            # The kernel gives a device without a queue one with its first discipline, and leaves it.
            must(["ip", "link", "set", "dev", name, "txqueuelen", str(each["queue"])])
        if there and each["segments"] and segments(name) != each["segments"]:
            must(["ip", "link", "set", "dev", name, "gso_max_segs", str(each["segments"])])
    return done


# ---- removal


def started(pid: int) -> int | None:
    """Return the start time of a process in ticks since boot; None when it does not exist, or is a zombie."""
    fields = read("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return int(fields[19]) if fields and fields[0] != "Z" else None


def marked(mark: str) -> list[tuple[int, int]]:
    """Return number and start time of every process that carries the mark in its environment, but not of this one."""
    wanted, found = ("TESTBED_ID=" + mark).encode(), []
    own, pid = {os.getpid()}, os.getppid()
    while pid > 1:
        own.add(pid)
        fields = read("/proc/%d/stat" % pid).rpartition(")")[2].split()
        pid = int(fields[1]) if fields else 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            continue
        since = started(int(name))
        if wanted in variables and since is not None and int(name) not in own:
            found.append((int(name), since))
    return found


def end_processes(mark: str) -> list[int]:
    """Kill every process of the testbed, by number and start time, until there is none; return their numbers."""
    ended: set[int] = set()
    deadline = time.monotonic() + 20
    while True:
        found = marked(mark)
        if not found:
            return sorted(ended)
        if time.monotonic() > deadline:
            raise RuntimeError("processes %s do not end" % ", ".join(str(pid) for pid, _since in found))
        for pid, since in found:
            if started(pid) == since:
                try:
                    os.kill(pid, signal.SIGKILL)
                    ended.add(pid)
                except ProcessLookupError:
                    continue
        time.sleep(0.1)


def forget_counters(pids: list[int], home: str) -> None:
    """Remove the files in which killed JVMs kept their counters, and their folders that were not there before."""
    before = json.loads(read(os.path.join(home, MARKER)) or "{}").get("hsperfdata", [])
    for name in os.listdir("/tmp"):
        if not name.startswith("hsperfdata_"):
            continue
        folder = os.path.join("/tmp", name)
        for pid in pids:
            if os.path.exists(os.path.join(folder, str(pid))):
                os.unlink(os.path.join(folder, str(pid)))
        if name not in before and not os.listdir(folder):
            os.rmdir(folder)


def begin(config: dict[str, Any]) -> dict[str, Any]:
    """Make the testbed's folder, with its marker first and this program in it."""
    home = config["home"]
    os.makedirs(home, mode=0o755)
    there = [name for name in os.listdir("/tmp") if name.startswith("hsperfdata_")]
    save(os.path.join(home, MARKER), {"mark": config["mark"], "testbed": config["testbed"], "hsperfdata": there})
    for folder in config["folders"]:
        os.makedirs(folder, exist_ok=True)
    return {}


def release_software(parent: str, mark: str, keep: bool) -> list[str]:
    """Remove the testbed from the users of each software; remove software without a user unless it is kept."""
    if not os.path.isdir(parent):
        return []
    done = []
    for name in os.listdir(parent):
        if not name.endswith(".users"):
            continue
        users, folder = os.path.join(parent, name), os.path.join(parent, name[: -len(".users")])
        if os.path.exists(os.path.join(users, mark)):
            os.unlink(os.path.join(users, mark))
        if not os.listdir(users) and not keep:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(folder + ".partial", ignore_errors=True)
            os.rmdir(users)
            done.append("software %s" % os.path.basename(folder))
    if not os.listdir(parent):
        os.rmdir(parent)
    return done


def remove(config: dict[str, Any]) -> dict[str, Any]:
    """Remove the testbed from this machine; return what was removed. A missing part is no error."""
    home, mark = config["home"], config["mark"]
    ended = end_processes(mark)
    done = ["%d processes" % len(ended)] if ended else []
    if os.path.isdir(home):
        marker = json.loads(read(os.path.join(home, MARKER)) or "{}")
        if marker.get("mark") != mark and set(os.listdir(home)) - {MARKER + ".partial"}:
            raise RuntimeError("%s is not this testbed's: its file %s has another mark" % (home, MARKER))
        for name in (PENDING, CONFIRMED, EXPIRED):
            if os.path.exists(os.path.join(home, name)):
                done += restore(os.path.join(home, name))
        forget_counters(ended, home)
        shutil.rmtree(home)
        done.append(home)
    return {"removed": done + release_software(config["software"], mark, config["keep"])}


STEPS = {step.__name__: step for step in (survey, reach, begin, shape, confirm, timer, remove)}


def main(argv: list[str]) -> int:
    """Run one step; print its answer, or the failure of the step, as JSON."""
    os.environ["PATH"] = PATH
    try:
        print(json.dumps(STEPS[argv[1]](json.loads(argv[2]))))
    except (OSError, RuntimeError) as error:
        print(json.dumps({"error": str(error)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
