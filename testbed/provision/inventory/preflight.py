"""The preflight of machines that exist: for every host at once, what it lacks. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from results.render import table
from testbed.errors import TestbedError
from testbed.network.machine_shaping import foreign_shaping
from testbed.provision.inventory.survey import MachineFacts, data_addresses
from testbed.software.commands import OLDEST_JAVA
from testbed.topology.host import DeclaredHost
from testbed.topology.model import Topology

LEAST_FREE_BYTES = 2 * 10**9
"""A broker's own files, its software, and little data; an experiment says itself what it needs."""
MOST_OFFSET_S = 0.1
"""Samples of several hosts are compared second by second: a tenth of a second is 1 % of the quota window."""
USUAL_MTU = 1500
LEAST_MTU = 1280
OK = "ok"


@dataclass(frozen=True, slots=True)
class PreflightCheck:
    """The result of one check of one host: `shown` in the table, and what the host lacks, if anything."""

    shown: str
    lacks: tuple[str, ...] = ()
    remark: str = ""


_Check = Callable[[DeclaredHost, MachineFacts], PreflightCheck]


def _ssh(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    if facts.unreachable:
        return PreflightCheck("NO", (f"a login over SSH: {facts.unreachable}",))
    return PreflightCheck(OK)


def _root(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    access = host.access
    if facts.sudo:
        message = f"sudo without a password for {access.user} ({facts.sudo}); a line in /etc/sudoers.d gives it: "
        return PreflightCheck("NO", (message + f"{access.user} ALL=(ALL) NOPASSWD: ALL",))
    return PreflightCheck("sudo" if access.sudo else "root")


def _python(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    if not facts.python:
        return PreflightCheck("NO", ("python3; on Debian: apt-get install python3-minimal",))
    version = str(facts.survey["python"])
    if tuple(map(int, version.split("."))) < (3, 7):
        return PreflightCheck(version, (f"python3 3.7 or newer (it has {version})",))
    return PreflightCheck(version)


def java_home(facts: MachineFacts) -> str:
    """Return the home of the newest Java that can run Kafka; empty without one."""
    able = [each for each in facts.survey.get("java", ()) if each["major"] >= OLDEST_JAVA]
    return str(max(able, key=lambda each: int(each["major"]))["home"]) if able else ""


def _java(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    if not host.role.runs_kafka:
        return PreflightCheck("-")
    found = {str(each["home"]): int(each["major"]) for each in facts.survey.get("java", ())}
    home = java_home(facts)
    if home:
        return PreflightCheck(str(found[home]))
    there = f" (it has {', '.join(f'{major} in {at}' for at, major in found.items())})" if found else ""
    remedy = "on Debian: apt-get install openjdk-17-jre-headless; or name its home with java, under ssh"
    return PreflightCheck("NO", (f"Java {OLDEST_JAVA} or newer{there}; {remedy}",))


def _programs(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    there: Mapping[str, str] = facts.survey.get("programs", {})
    packages = {"ip": "iproute2", "tc": "iproute2", "setsid": "util-linux", "tar": "tar"}
    lacking = sorted({package for name, package in packages.items() if not there.get(name)})
    if lacking:
        return PreflightCheck("NO", tuple(f"{package}; on Debian: apt-get install {package}" for package in lacking))
    remarks = []
    if not there.get("iperf3"):
        remarks.append("no iperf3: `nics` and `run` cannot measure its NICs")
    if not there.get("ethtool"):
        remarks.append("no ethtool: segmentation offload stays on, and counters read up to 4 % low")
    return PreflightCheck(OK, remark="; ".join(remarks))


def _kernel(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    refused = {kind: why for kind, why in facts.survey.get("kernel", {}).items() if why}
    if refused:
        modules = "modprobe sch_htb ifb sch_ingress cls_u32 act_mirred, and sch_netem for delay and loss"
        text = "; ".join(f"{kind}: {why}" for kind, why in refused.items())
        return PreflightCheck("NO", (f"kinds of traffic control in the kernel ({text}); {modules}",))
    return PreflightCheck(OK)


def _nics(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    lacks = []
    for nic, address in zip(host.nics, data_addresses(host, facts), strict=True):
        device: Mapping[str, Any] | None = facts.survey.get("devices", {}).get(nic.name)
        if device is None:
            lacks.append(f"a network device {nic.name}; `ip -br link` lists them")
            continue
        if not device["up"]:
            lacks.append(f"{nic.name} up; `ip link set {nic.name} up`")
        if not device["addresses"]:
            lacks.append(f"an IPv4 address on {nic.name}")
        elif address not in device["addresses"]:
            there = ", ".join(device["addresses"])
            lacks.append(f"the address {address} on {nic.name}, which has {there}")
        if foreign := foreign_shaping(device["qdiscs"]):
            what = ", ".join(foreign)
            lacks.append(f"a NIC that is not shaped yet: {nic.name} has {what}, which would be lost")
    return PreflightCheck("NO" if lacks else OK, tuple(lacks))


def _disk(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    disk: Mapping[str, Any] = facts.survey["disk"]
    folder = host.access.folder
    if not disk["exists"]:
        return PreflightCheck("NO", (f"the folder {folder}; make it, or name another with folder",))
    if not disk["writable"]:
        return PreflightCheck("NO", (f"a folder that can be written to: {folder} cannot",))
    free = int(disk["free"])
    shown = f"{free / 1e9:.1f}GB"
    if free < LEAST_FREE_BYTES:
        return PreflightCheck(shown, (f"{LEAST_FREE_BYTES / 1e9:g}GB of free space in {folder} (it has {shown})",))
    return PreflightCheck(shown)


def _ports(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    taken: Mapping[str, str] = facts.survey["ports"]
    lacks = tuple(f"the port {port}, which {who} uses" for port, who in sorted(taken.items()))
    return PreflightCheck("NO" if lacks else OK, lacks)


def _clock(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    offset, unsure = facts.clock.offset_s, facts.clock.unsure_s
    shown = f"{1000 * offset:+.0f} ± {1000 * unsure:.0f} ms"
    if abs(offset) - unsure > MOST_OFFSET_S:
        text = f"this machine's clock, within {1000 * MOST_OFFSET_S:.0f} ms (it is off by {shown}); run chrony on both"
        return PreflightCheck(shown, (text,))
    return PreflightCheck(shown)


def _mtu(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    devices = facts.survey.get("devices", {})
    found = {nic.name: int(devices[nic.name]["mtu"]) for nic in host.nics if devices.get(nic.name)}
    lacks = tuple(
        f"an MTU of {LEAST_MTU} to {USUAL_MTU} on {name} (it has {mtu}): rates are shaped and read in such frames"
        for name, mtu in found.items()
        if not LEAST_MTU <= mtu <= USUAL_MTU
    )
    return PreflightCheck(", ".join(map(str, found.values())) or "?", lacks)


def _reach(host: DeclaredHost, facts: MachineFacts) -> PreflightCheck:
    lacks = [f"a way to {address} ({why})" for address, why in sorted(facts.silent.items())]
    lacks += [
        f"a data address that this machine reaches: {address} does not answer ({why})"
        for address, why in sorted(facts.unseen.items())
    ]
    return PreflightCheck("NO" if lacks else OK, tuple(lacks))


CHECKS: Mapping[str, _Check] = {
    "SSH": _ssh,
    "ROOT": _root,
    "PYTHON3": _python,
    "JAVA": _java,
    "PROGRAMS": _programs,
    "KERNEL": _kernel,
    "NIC": _nics,
    "DISK": _disk,
    "PORTS": _ports,
    "CLOCK": _clock,
    "MTU": _mtu,
    "REACH": _reach,
}
_WITHOUT_SURVEY = ("SSH", "ROOT", "PYTHON3", "CLOCK")
"""Checks that need no Python on the host."""


@dataclass(frozen=True, slots=True)
class PreflightReport:
    """The results of all checks by host."""

    checks: Mapping[str, Mapping[str, PreflightCheck]]

    @property
    def lacks(self) -> list[str]:
        """Return a line for each thing that a host lacks."""
        return [
            f"{host} lacks {what}" for host, of in self.checks.items() for each in of.values() for what in each.lacks
        ]

    @property
    def remarks(self) -> list[str]:
        """Return a line for each remark: it works, but not as well."""
        return [f"{host}: {each.remark}" for host, of in self.checks.items() for each in of.values() if each.remark]

    def text(self) -> str:
        """Return the table of all hosts, what they lack, and the remarks."""
        rows = [(host, *(of[name].shown if name in of else "?" for name in CHECKS)) for host, of in self.checks.items()]
        return "\n".join([table(("HOST", *CHECKS), rows), *self.lacks, *self.remarks])


def preflight(topology: Topology, facts: Mapping[str, MachineFacts]) -> PreflightReport:
    """Return what each machine has and lacks for the topology."""
    found = {host.name: _checks(host, facts[host.name]) for host in topology.hosts}
    mtus = {
        name: of["MTU"].shown
        for name, of in found.items()
        if "MTU" in of and of["MTU"].shown[0].isdigit() and not of["MTU"].lacks
    }
    if len(set(mtus.values())) > 1:
        usual = max(mtus.values(), key=lambda mtu: (list(mtus.values()).count(mtu), mtu))
        for name, mtu in mtus.items():
            if mtu != usual:
                lack = f"the MTU of the other hosts, {usual} (it has {mtu}): large frames to it would be lost"
                found[name]["MTU"] = PreflightCheck(mtu, (lack,))
    for name, lack in _shared_addresses(topology, facts).items():
        if "NIC" in found[name]:
            found[name]["NIC"] = PreflightCheck("NO", (*found[name]["NIC"].lacks, lack))
    return PreflightReport(found)


def _shared_addresses(topology: Topology, facts: Mapping[str, MachineFacts]) -> dict[str, str]:
    """Return host → what it lacks, for each host whose data address another has: both may be one machine."""
    owners, found = dict[str, str](), dict[str, str]()
    for host in topology.hosts:
        for address in filter(None, data_addresses(host, facts[host.name])):
            if (owner := owners.setdefault(address, host.name)) != host.name:
                found[host.name] = f"a data address of its own: {address} is {owner}'s; name each machine once"
    return found


def _checks(host: DeclaredHost, facts: MachineFacts) -> dict[str, PreflightCheck]:
    if facts.unreachable:
        return {"SSH": _ssh(host, facts)}
    names: Sequence[str] = list(CHECKS) if facts.survey else _WITHOUT_SURVEY
    return {name: CHECKS[name](host, facts) for name in names}


def require_ready(topology: Topology, report: PreflightReport) -> None:
    """Raise `TestbedError` with the table when a host lacks anything."""
    if report.lacks:
        raise TestbedError(
            f"{topology.name} cannot be brought up on these machines; nothing was changed on them\n{report.text()}"
        )
