"""A testbed in memory: processes, devices, quotas and cgroups that faults can change."""

import re
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

from testbed.errors import TestbedError
from testbed.faults.devices import program
from testbed.faults.network import ports_of, shapes
from testbed.hosts import CommandResult
from testbed.network.addresses import AddressPlan
from testbed.owner import Owner
from testbed.provision import kafka_nodes
from testbed.provision import state as states
from testbed.topology import loads
from tests.fakes.admin import FakeAdmin
from tests.provision.states import make

DEAD = Owner(1, 0, "another boot")

THREE = loads(
    """
name: three
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts: {b1: {role: both}, b2: {role: broker}, b3: {role: broker}, load: {role: client}}
"""
)
RACKS = loads(
    """
name: racks
racks: {r1: {uplink: {rate: 200mbit}}, r2: {}}
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit, delay: 5ms}}
hosts:
  b1: {role: both, rack: r1}
  b2: {role: both, rack: r2, disk: {size: 1GB}}
  b3: {role: both, rack: r1}
  b4:
    role: broker
    rack: r2
    disk: {size: 1GB}
    nics: {data0: {rate: 400mbit}, repl0: {rate: 100mbit}}
"""
)


class Crash(BaseException):
    """The process dies: nothing after it runs."""


class Kernel:
    """What the kernel has; `crash_at` n: the n-th change (from 0) is not made, and the process dies."""

    def __init__(self, topology):
        self.shapes = dict(shapes(topology))
        self.down = set()
        self.lost = {}
        self.groups = {}
        self.changes = []
        self.crash_at = None
        self.deaf = False
        self.single_frames = False

    def change(self, what):
        if self.crash_at == len(self.changes):
            raise Crash(what)
        self.changes.append(what)
        return not self.deaf

    def all(self):
        groups = {(host, what) for host, found in self.groups.items() for what, value in found.items() if value}
        return dict(self.shapes), set(self.down), dict(self.lost), groups


class FakeDevices:
    """`testbed.faults.devices.Devices` over such a kernel."""

    def __init__(self, testbed):
        self._kernel = testbed.kernel

    def shape(self, device):
        return self._kernel.shapes.get(device)

    def set_shape(self, device, shape):
        if self._kernel.change(f"shape {device}"):
            self._kernel.shapes[device] = shape
            if shape is None:
                del self._kernel.shapes[device]

    def hand_frames(self, *, single):
        self._kernel.single_frames = single

    def links_down(self):
        return set(self._kernel.down)

    def set_link(self, name, *, up):
        if self._kernel.change(f"{name} {'up' if up else 'down'}"):
            (self._kernel.down.discard if up else self._kernel.down.add)(name)

    def filters(self):
        return {name: [program(addresses)] for name, addresses in self._kernel.lost.items()}

    def set_lost(self, name, addresses):
        if self._kernel.change(f"lost {name}"):
            self._kernel.lost[name] = addresses
            if not addresses:
                del self._kernel.lost[name]


class FakeHost:
    def __init__(self, testbed, name):
        self._testbed, self.name = testbed, name
        self.daemons = {}
        self.files = {}

    def put(self, content, path, *, mode=0o644):
        self.files[path] = content

    def tail(self, path, *, lines=100):
        return "T\n"

    def run(self, command, *, timeout_s=60.0, check=True, stdin=b""):
        out, status = self._answer(command)
        return CommandResult(" ".join(command), status, out, "", 0.0)

    def _answer(self, command):
        if isinstance(command, str):
            file = re.findall(r"p=\$\(cat (/run/[\w-]+\.pid)", command)[0]
            if "setsid" in command and self._testbed.kernel.change(f"start {file} on {self.name}"):
                self.daemons[file] = 500 + len(self._testbed.kernel.changes)
            return str(self.daemons.get(file, "")), 0
        if command[0] == "kill":
            assert self._testbed.kernel.change(f"kill {command[-1]} on {self.name}")
            self.daemons = {file: pid for file, pid in self.daemons.items() if str(pid) != command[-1]}
            return "", 0
        if command[0] == "rm":
            return "", 0
        if command == ["cat", "/proc/net/tcp"]:
            return "", 0
        if command[0] == "ping":
            return "", 0 if self._testbed.reaches(self.name, command[-1]) else 1
        if command[0] == "ip":
            ports = ports_of(self._testbed.topology, self.name, command[-1])
            state = "LOWERLAYERDOWN" if {*ports} <= self._testbed.kernel.down else "UP"
            return f'[{{"operstate": "{state}"}}]', 0
        state = self._testbed.nodes[self.name].state
        return f"{command[1].split('/')[2]} (java (x) y) {state} 1 1", 0


class FakeNode:
    """A process with a number and a state, as Kafka on a host."""

    what, log = "Kafka", "/var/log/kafka/server.log"

    def __init__(self, testbed, name):
        self._testbed, self.host = testbed, FakeHost(testbed, name)
        self.number, self.state, self.deaf_to = 100, "S", set()

    def pid(self):
        return self.number if self.state else None

    def signal(self, name):
        if not self._testbed.kernel.change(f"SIG{name} {self.host.name}") or name in self.deaf_to:
            return
        assert self.state, "no process"
        self.state = {"KILL": None, "TERM": None, "STOP": "T", "CONT": "S"}[name]

    def start(self):
        if self._testbed.kernel.change(f"start {self.host.name}") and not self.state:
            self.number, self.state = self.number + 1, "S"

    def stop(self, *, timeout_s=30.0):
        self.signal("TERM")

    def log_tail(self):
        return "the end of its log"


class FakeCgroup:
    """A container's control groups; the files of a disk are here, too."""

    def __init__(self, testbed, host):
        self._testbed, self._host = testbed, host

    def _change(self, what, value):
        if self._testbed.kernel.change(f"{what} of {self._host}"):
            self._testbed.kernel.groups.setdefault(self._host, {})[what] = value

    def _get(self, what):
        return self._testbed.kernel.groups.get(self._host, {}).get(what)

    def set(self, what, value):
        if bool(self._get(what)) != value:
            self._change(what, value)

    def is_full(self):
        return bool(self._get("full"))

    def fill(self, wanted):
        if self.is_full() != wanted and self._get("read_only"):
            raise TestbedError("Operation not permitted")  # the file or its folder is immutable
        self.set("full", wanted)

    def memory_bytes(self):
        return self._get("memory")

    def memory_used_bytes(self):
        return 300 * 2**20

    def limit_memory(self, limit_bytes):
        self._change("memory", limit_bytes)

    def disk_rate(self, device):
        return self._get("rate")

    def limit_disk(self, device, rate_bytes_per_s):
        self._change("rate", rate_bytes_per_s)


class FakeEngine:
    def __init__(self, testbed):
        self._testbed, self.limits = testbed, {}

    def containers(self, name):
        return [SimpleNamespace(id=f"id-{h.name}", host=h.name) for h in self._testbed.topology.hosts]

    def limit_cpus(self, container, cpus):
        if self._testbed.kernel.change(f"limit {container}"):
            self.limits[container] = cpus


class FakeTestbed:
    """Up, in a state folder of its own."""

    def __init__(self, topology=THREE, name="one"):
        self.topology, self.name = topology, name
        self.state = make(name, cluster_id="fake-cluster")
        states.save(self.state)
        self.plan = AddressPlan(0, tuple(host.name for host in topology.hosts))
        self.kernel = Kernel(topology)
        self.nodes = {host.name: FakeNode(self, host.name) for host in topology.hosts if host.node_id is not None}
        self.hosts = {host.name: FakeHost(self, host.name) for host in topology.hosts}
        self.engine = FakeEngine(self)
        self.bootstrap = ("fake:9092",)
        self.cluster = FakeAdmin({}, broker_ids=tuple(h.node_id for h in topology.brokers), hook=self._ask)
        self.leader = 1
        self.served = 0

    def _ask(self, call, args):
        self._alive(int(args[0]) if call == "broker_configs" else None)
        if call == "alter_configs" and args[0].kind == "broker":
            self._alive(int(args[0].name))
            self.kernel.change(f"configs {args[0]}")

    def _alive(self, node_id):
        for host in self.topology.hosts:
            if host.node_id == node_id and node_id is not None and self.nodes[host.name].state != "S":
                raise TestbedError(f"broker {node_id} does not answer")

    def node(self, host):
        return self.nodes[host]

    def pids(self):
        return 1, {host.name: host.name for host in self.topology.hosts}

    @contextmanager
    def admin(self, *, timeout_s=10.0):
        controllers = {h.node_id: h.name for h in self.topology.controllers}
        if self.nodes[controllers[self.leader]].state != "S":
            others = [n for n, name in controllers.items() if self.nodes[name].state == "S"]
            if not others:
                raise TestbedError("nobody answers")
            self.leader = others[0]
        cluster = self.cluster.cluster
        self.cluster.cluster = lambda: cluster()._replace(controller_id=self.leader)
        yield self.cluster
        self.cluster.cluster = cluster

    def wait_serving(self, *, timeout_s):
        kafka_nodes.wait_serving(self, timeout_s=timeout_s)
        self.served += 1

    def reaches(self, source, address):
        ports = ports_of(self.topology, source)
        where = {
            str(self.plan.data_ip(h.name, n)): (h.name, n) for h in self.topology.hosts for n, _ in enumerate(h.nics)
        }
        down, lost = self.kernel.down, {p: {*map(str, a)} for p, a in self.kernel.lost.items()}
        blocked = ports[0] in down or address in lost.get(ports[0], ())
        if address == str(self.plan.fabric):
            rack = self.topology.racks.index(self.topology.host(source).rack)
            return not (blocked or f"dn{rack}" in down)
        if address in where:
            far, number = where[address]
            port = ports_of(self.topology, far)[number]
            return not (blocked or port in down or str(self.plan.data_ip(source)) in lost.get(port, ()))
        return not blocked

    def every_host(self):
        yield from self.hosts.items()
        yield from ((name, node.host) for name, node in self.nodes.items())

    def snapshot(self):
        """Everything that faults can change."""
        processes = {name: node.state for name, node in self.nodes.items()}
        processes |= {(name, file): "S" for name, host in self.every_host() for file in host.daemons}
        configs = {str(resource): dict(keys) for resource, keys in self.cluster.configs.items()}
        limits = {name: cpus for name, cpus in self.engine.limits.items() if cpus is not None}
        return self.kernel.all(), processes, configs, limits


def declared(testbed):
    """What `snapshot` must be without faults."""
    return Kernel(testbed.topology).all(), dict.fromkeys(testbed.nodes, "S"), {}, {}


def slow(shape, rate_bps, burst_bytes):
    return replace(shape, rate_bps=rate_bps, burst_bytes=burst_bytes, ceil_bps=-1, cburst_bytes=-1, leaf_bytes=-1)
