"""Faults of the object store, on real processes and files of this machine in the place of a host's."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from testbed.errors import TestbedError, UsageError
from testbed.faults import Faults, parse_fault, store_errors, stores
from testbed.faults.active_faults import heal_leftovers
from testbed.faults.parse import as_text
from testbed.faults.processes import pulses, start
from testbed.hosts import CommandFailed, CommandResult, Daemon
from testbed.objectstore.server import DATA_DIR, PID_FILE
from testbed.owner import Owner
from testbed.provision import state as states
from testbed.topology import loads
from testbed.wait import wait_for, wait_until
from tests.provision.states import make

DEAD = Owner(1, 0, "another boot")
TOPOLOGY = """
name: stored
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both}
  s1: {role: objectstore, disk: {size: 1GB}}
"""
SIZE, FREE = 10**9, 3_000_000


class LocalHost:
    """Runs what a host is told here, with its files under a folder; its disk is as large as it says."""

    name = "s1"

    def __init__(self, root):
        self._root = str(root)

    def run(self, command, *, timeout_s=60.0, check=True, stdin=b""):
        words = [command] if isinstance(command, str) else list(command)
        if words[0] == "df":
            there = self.size(stores.FILLER)
            return CommandResult("df", 0, f"Avail Size\n{FREE + stores.left_when_full(SIZE) - there} {SIZE}\n", "", 0.0)
        local = [word.replace("/var/", f"{self._root}/var/").replace("/run/", f"{self._root}/run/") for word in words]
        done = subprocess.run(
            ["sh", "-c", local[0]] if isinstance(command, str) else local,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        result = CommandResult(" ".join(words), done.returncode, done.stdout, done.stderr, 0.0)
        if check and done.returncode:
            raise CommandFailed(self.name, result)
        return result

    def put(self, content, path, *, mode=0o644):
        Path(self._root + path).write_bytes(content)

    def size(self, path):
        try:
            return Path(self._root + path).stat().st_size
        except FileNotFoundError:
            return 0

    def exists(self, path):
        return Path(self._root + path).exists()

    def tail(self, path, *, lines=100):
        return ""


class FakeStore:
    """The server is a process that sleeps; it is ready while that runs and its drive is there."""

    def __init__(self, host):
        self.host = host
        self.waited = 0
        self.refused = []
        self.others, self.behind, self.events = 0, 0, []
        """How many other servers there are, and for how many looks this one does not reach them once it is back."""

    def server(self, host):
        assert host == "s1"
        return Daemon(self.host, "MinIO", ["sleep", "600"], pid_file=PID_FILE, log="/var/log/minio/server.log")

    def silence(self, host):
        return "" if self.server(host).pid() else "connection refused"

    def ask(self):
        return 404 if self.host.exists(FORMAT) else 503

    def refusal(self):
        self.refused.append("503" if self.ask() == 503 else "507" if self.host.exists(stores.FILLER) else "")
        return self.refused[-1]

    def mark(self, without):
        assert without == "s1"
        self.events.append(f"marked {'without' if self.silence('s1') else 'with'} s1")
        return self.others > 0

    def unmarked(self):
        self.behind -= 1
        self.events.append("behind" if self.behind >= 0 else "served")
        return {"s1": 404} if self.behind >= 0 else {}

    def remove_mark(self):
        self.events.append("removed")

    def wait_ready(self, *, timeout_s):
        assert self.silence("s1") == ""
        self.waited += 1


FORMAT = f"{DATA_DIR}/d1/.minio.sys/format.json"


class FakeTestbed:
    def __init__(self, root, topology):
        self.name, self.topology = "stored", topology
        states.save(make(self.name))
        self.host = LocalHost(root)
        self.objectstore = FakeStore(self.host)
        self.hosts = {"s1": self.host}

    def wait_serving(self, *, timeout_s):
        pass


@pytest.fixture
def up(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("testbed.faults.active_faults._LOOK_S", 0.01)
    monkeypatch.setattr("testbed.faults.store_errors.redirect", lambda testbed, host, *, wanted: None)
    for folder in (f"{DATA_DIR}/d1/.minio.sys", "/run"):
        Path(f"{tmp_path}{folder}").mkdir(parents=True)
    Path(f"{tmp_path}{FORMAT}").write_text("{}")
    testbed = FakeTestbed(tmp_path, loads(TOPOLOGY))
    start(testbed.objectstore.server("s1"))
    yield testbed
    for file in ("minio.pid", "minio-pulses.pid"):
        path = tmp_path / "run" / file
        if path.exists():
            try:
                os.kill(int(path.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                continue


def state(testbed):
    """The letter of the server's process; empty without one."""
    pid = testbed.objectstore.server("s1").pid()
    if pid is None:
        return ""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def as_declared(testbed):
    host = testbed.host
    # A process that has just started runs before it sleeps.
    wait_until(lambda: state(testbed) == "S", 10, 0.02, "the server to run and wait")
    assert host.exists(FORMAT) and not host.exists(stores.FILLER)
    assert pulses(testbed.objectstore.server("s1"), PID_FILE, None).pid() is None
    assert Faults(testbed).list() == ()


EACH = [
    "objectstore-down host=s1",
    "objectstore-restart host=s1",
    "objectstore-slow host=s1 pause=60ms every=100ms",
    "objectstore-full host=s1",
    "objectstore-503 host=s1",
]


def effect(testbed):
    """Of which kinds something is seen."""
    host, server = testbed.host, testbed.objectstore.server("s1")
    found = {
        "objectstore-down": state(testbed) == "",
        "objectstore-slow": pulses(server, PID_FILE, None).pid() is not None,
        "objectstore-full": host.size(stores.FILLER) == FREE,
        "objectstore-503": not host.exists(FORMAT),
    }
    return {kind for kind, seen in found.items() if seen}


@pytest.mark.parametrize("text", EACH)
def test_it_takes_effect_and_is_healed(up, text):
    before = up.objectstore.server("s1").pid()
    with Faults(up).injected(parse_fault(text)):
        assert effect(up) == {text.split()[0]} - {"objectstore-restart"}
    as_declared(up)
    assert up.objectstore.waited == 1
    # The full disk is seen by the server before the fault is in effect; both it and lost drives are asked after.
    assert up.objectstore.refused == {"full": ["507", ""], "503": [""]}.get(
        text.split()[0].removeprefix("objectstore-"), []
    )
    assert (up.objectstore.server("s1").pid() == before) == (text.split()[0] not in EACH[0] + EACH[1])


def test_one_of_several_servers_is_healed_when_it_serves_what_came_without_it(up):
    up.objectstore.others, up.objectstore.behind = 2, 2
    with Faults(up).injected(parse_fault(EACH[0])):
        pass
    assert up.objectstore.events == ["marked without s1", "behind", "behind", "served", "removed"]
    as_declared(up)


def test_one_that_never_reaches_the_others_is_named_after_a_bound(up, monkeypatch):
    monkeypatch.setattr(stores, "READY_S", 0.3)
    up.objectstore.others, up.objectstore.behind = 2, 10**6
    faults = Faults(up)
    faults.add(parse_fault(EACH[0]))
    told = r"each server of the object store to serve an object that came without s1; last seen: {'s1': 404}"
    with pytest.raises(TestbedError, match=told):
        faults.clear()
    up.objectstore.behind = 0
    faults.clear()
    as_declared(up)


def test_a_server_on_a_machine_that_exists_is_healed_without_this_machines_kernel(up, monkeypatch):
    monkeypatch.setattr(store_errors, "settle", lambda *_args: pytest.fail("its container is not here"))
    up.topology = loads(
        "{name: stored, provision: inventory, inventory: {user: ops, key: id}, kafka: {version: 4.3.1},"
        " defaults: {nic: {device: eth0, rate: 1gbit}},"
        " hosts: {b1: {role: both, ssh: {address: 198.18.5.2}}, s1: {role: objectstore, ssh: {address: 198.18.5.3}}}}"
    )
    with Faults(up).injected(parse_fault(EACH[0])):
        assert effect(up) == {"objectstore-down"}
    as_declared(up)


@pytest.mark.parametrize("text", EACH)
def test_what_a_dead_process_left_is_healed_by_the_next(up, text):
    faults = Faults(up)
    faults._owner = DEAD
    faults.add(parse_fault(text))
    said = []
    heal_leftovers(up, said.append)
    assert said == [f"healed {text}: the process that injected it is dead"]
    as_declared(up)


def test_all_at_once_are_healed_in_any_order(up):
    faults = Faults(up)
    ids = {text: faults.add(parse_fault(text)) for text in (EACH[2], EACH[3], EACH[4], EACH[0])}
    assert effect(up) == {"objectstore-down", "objectstore-full", "objectstore-503"}, "nothing is left to stop"
    faults.clear(ids[EACH[3]])
    assert effect(up) == {"objectstore-down", "objectstore-503"}
    faults.clear(ids[EACH[0]])
    assert effect(up) == {"objectstore-slow", "objectstore-503"}
    faults.clear()
    as_declared(up)


def test_of_two_the_longer_pause_counts(up):
    faults = Faults(up)
    faults.add(parse_fault("objectstore-slow host=s1 pause=300ms every=400ms"))
    short = faults.add(parse_fault("objectstore-slow host=s1 pause=20ms every=400ms"))
    seen = stores.states(up.objectstore.server("s1"), 2_000_000, 40)
    assert 0.55 < sum(letter == "T" for letter in seen) / len(seen) < 0.95
    faults.clear(short)
    assert effect(up) == {"objectstore-slow"}
    faults.clear()
    as_declared(up)


def test_a_pause_that_was_cut_in_the_middle_does_not_stay(up):
    """The pulses are killed while the server stands still."""
    faults = Faults(up)
    faults.add(parse_fault("objectstore-slow host=s1 pause=900ms every=1000ms"))
    stopper = pulses(up.objectstore.server("s1"), PID_FILE, None).pid()
    # At the begin of a pause: the kill must not come after its end.
    for wanted in ("S", "T"):
        wait_for(lambda: state(up), lambda found, wanted=wanted: found == wanted, 10.0, 0.005, f"the state {wanted}")
    os.kill(stopper, signal.SIGKILL)
    assert state(up) == "T"
    faults.clear()
    as_declared(up)


@pytest.mark.parametrize("text", [*EACH, "objectstore-slow host=s1"])
def test_its_text_is_the_whole_fault(text):
    assert as_text(parse_fault(text)) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("objectstore-down host=b1", "b1 runs no object store, its role is both; s1 do"),
        ("objectstore-down host=b9", "stored has no host 'b9'"),
        ("objectstore-slow host=s1 pause=90ms every=100ms", "allowed is a pause of 20ms or more"),
        ("objectstore-slow host=s1 pause=1.5ms", "expected whole milliseconds, such as 400ms"),
        ("objectstore-slow host=s1 pause=1", "1 has no unit"),
    ],
)
def test_what_cannot_be_is_refused(up, text, told):
    with pytest.raises(UsageError, match=told):
        Faults(up).add(parse_fault(text))
    as_declared(up)


def test_the_machines_own_disk_is_not_filled(up):
    up.topology = loads(TOPOLOGY.replace(", disk: {size: 1GB}", ""))
    with pytest.raises(UsageError, match="s1 has no disk of its own: to fill it would be to fill the machine's"):
        Faults(up).add(parse_fault("objectstore-full host=s1"))


def test_one_of_several_servers_without_its_drives_answers_with_the_others(up):
    up.topology = loads(TOPOLOGY + "  s2: {role: objectstore}\n  s3: {role: objectstore}\n")
    with pytest.raises(UsageError, match="s1 is one of 3 servers"):
        Faults(up).add(parse_fault("objectstore-503 host=s1"))


def test_a_server_that_is_down_cannot_get_worse(up):
    faults = Faults(up)
    faults.add(parse_fault("objectstore-down host=s1"))
    for text in EACH[:2]:
        with pytest.raises(TestbedError, match="MinIO on s1 does not run: it has objectstore-down already"):
            faults.add(parse_fault(text))
    faults.clear()
    as_declared(up)


def test_a_topology_without_a_store_says_so(up):
    up.topology = loads("{name: t, kafka: {version: 4.3.1}, defaults: {nic: {rate: 1mbit}}, hosts: {b1: {role: both}}}")
    with pytest.raises(UsageError, match=r"its role is both; t has none \(role objectstore\)"):
        Faults(up).add(parse_fault("objectstore-down host=b1"))


def test_where_nobody_knows_what_was_put_in_everything_is_put_back(up, monkeypatch):
    for other in ("settle_network", "settle_cpu", "settle_memory", "settle_stampede", "settle_process", "settle_disk"):
        monkeypatch.setattr(f"testbed.faults.active_faults.{other}", lambda *_asked: None)
    faults = Faults(up)
    for text in (EACH[3], EACH[4], EACH[0]):
        faults.add(parse_fault(text))
    for file in (states.folder(up.name) / "faults").glob("*.json"):
        file.write_text("damaged")
    faults.clear()
    as_declared(up)


@pytest.mark.parametrize(
    ("answer", "there"),
    [
        ("", True),
        ("iptables: Bad rule (does a matching rule exist in that chain?).", False),
        ("iptables: No chain/target/match by that name.", False),
    ],
)
def test_a_redirection_is_there_or_not_as_iptables_says(monkeypatch, answer, there):
    def run(command):
        if answer:
            raise TestbedError(f"`iptables` ended with status 1: {answer}")
        return ""

    monkeypatch.setattr(store_errors, "run_program_as_root", run)
    assert store_errors.redirected(7, "-t nat PREROUTING", ["-j", "REDIRECT"]) is there


def test_what_iptables_cannot_say_is_no_missing_redirection(monkeypatch):
    def run(command):
        raise TestbedError("`nsenter` ended with status 1: cannot open /proc/7/ns/net: No such file or directory")

    monkeypatch.setattr(store_errors, "run_program_as_root", run)
    with pytest.raises(TestbedError, match="cannot open"):
        store_errors.redirected(7, "-t nat PREROUTING", ["-j", "REDIRECT"])
