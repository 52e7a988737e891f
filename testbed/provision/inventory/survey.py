"""The survey of a machine that exists: what it has, read over SSH before anything is changed on it."""

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.hosts import Shell, SshHost
from testbed.hosts.clock import ClockOffset, measure_offset
from testbed.hosts.host import in_parallel
from testbed.kafka.node import CLIENT_PORT, CONTROLLER_PORT, REPLICATION_PORT, SECURE_PORT, secure_protocol
from testbed.network.flow import PORT as MEASURE_PORT
from testbed.objectstore.server import PORT as STORE_PORT
from testbed.provision.inventory.access import JumpKeys, VerifiedKeys, ssh_address, verified_keys
from testbed.software.jvm import AGENT_PORT
from testbed.topology.host import DeclaredHost
from testbed.topology.model import Topology

PROGRAM = Path(__file__).with_name("host_program.py")
PROGRAMS = ("ip", "tc", "setsid", "tar", "ethtool", "iperf3")
_IFB = "ip link add t0 type ifb"
TRIALS: Mapping[str, str] = {
    "ifb": _IFB,
    "htb": f"{_IFB} && tc qdisc add dev t0 root handle 1: htb default 10"
    " && tc class add dev t0 parent 1: classid 1:10 htb rate 100mbit burst 16k",
    "bfifo": f"{_IFB} && tc qdisc add dev t0 root bfifo limit 64k",
    "redirection": f"{_IFB} && ip link add t1 type ifb && tc qdisc add dev t0 handle ffff: ingress"
    " && tc filter add dev t0 parent ffff: protocol all prio 1 u32 match u32 0 0"
    " action mirred egress redirect dev t1",
}
NETEM = f"{_IFB} && tc qdisc add dev t0 root netem delay 1ms"
REACH_S = 3.0
ASK_S = 90.0
CONNECT_S = 6.0
_BEGIN = "testbed-survey"
_FIRST = f'echo {_BEGIN}; command -v python3; echo; id -u; echo "$SSH_CONNECTION"; sudo -n true 2>&1 | head -1'


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What was found of one machine. With `unreachable` nothing else was.

    `sudo` is why sudo does not work (empty: it does, or it is not needed). `ssh_port` is the port of the SSH server on
    the machine itself. `silent` are the data addresses that do not answer the machine, `unseen` its own data addresses
    that do not answer the driver; each with the reason. `clock` is the machine's clock less the driver's.
    """

    unreachable: str = ""
    keys: VerifiedKeys = field(default_factory=lambda: VerifiedKeys(""))
    ssh_port: int = 0
    sudo: str = ""
    python: bool = False
    survey: Mapping[str, Any] = field(default_factory=dict)
    clock: ClockOffset = field(default_factory=lambda: ClockOffset(0.0, 0.0))
    silent: Mapping[str, str] = field(default_factory=dict)
    unseen: Mapping[str, str] = field(default_factory=dict)


def ask(host: Shell, step: str, config: Mapping[str, Any], *, sudo: bool = False, program: str = "-") -> dict[str, Any]:
    """Run one step of the host program and return its answer. Raise `TestbedError` when the step failed.

    `program` is its path on the host; `-`: its text is sent.
    """
    words = [*(["sudo", "-n", "--"] if sudo else []), "python3", program, step, json.dumps(config)]
    text = PROGRAM.read_bytes() if program == "-" else b""
    said = host.run(words, timeout_s=ASK_S, stdin=text).stdout
    try:
        answer: dict[str, Any] = json.loads(said)
    except ValueError as error:
        raise TestbedError(f"{host.name}: `{step}` of the host program answered {said[-500:]!r}") from error
    if "error" in answer:
        raise TestbedError(f"{host.name}: {answer['error']}")
    return answer


def ports_of(host: DeclaredHost) -> tuple[int, ...]:
    """Return the ports that the testbed's servers use on a host."""
    if not host.role.runs_kafka:
        return (STORE_PORT, MEASURE_PORT) if host.role.stores_data else (MEASURE_PORT,)
    found = [AGENT_PORT, MEASURE_PORT]
    if host.is_broker:
        found += [CLIENT_PORT, REPLICATION_PORT]
        found += [SECURE_PORT] if secure_protocol(host.properties) else []
    return (*found, CONTROLLER_PORT) if host.is_controller else tuple(found)


def survey(topology: Topology) -> dict[str, MachineFacts]:
    """Ask every host at once, and return the facts by host. Change nothing on any host."""
    jump_keys = JumpKeys()
    facts = in_parallel(topology.hosts, lambda host: _of_machine(host, jump_keys))
    found = dict(zip([host.name for host in topology.hosts], facts, strict=True))
    asked = [host for host in topology.hosts if found[host.name].survey]
    addresses = {host.name: data_addresses(host, found[host.name]) for host in asked}
    return found | dict(in_parallel(asked, lambda host: _with_silence(host, found[host.name], addresses)))


def data_addresses(host: DeclaredHost, facts: MachineFacts) -> tuple[str, ...]:
    """Return the data address of each NIC: the declared one, else the first of its device; empty where unknown."""
    devices = facts.survey.get("devices", {})
    return tuple(nic.address or next(iter((devices.get(nic.name) or {}).get("addresses", ())), "") for nic in host.nics)


def _of_machine(declared: DeclaredHost, jump_keys: JumpKeys) -> MachineFacts:
    access = declared.access
    try:
        keys = verified_keys(declared.name, access, jump_keys)
    except TestbedError as error:
        return MachineFacts(unreachable=str(error))
    host = SshHost(declared.name, ssh_address(access, keys), connect_timeout_s=CONNECT_S)
    try:
        return _asked(host, declared, MachineFacts(keys=keys))
    except TestbedError as error:
        return MachineFacts(unreachable=str(error), keys=keys)
    finally:
        host.close()


def _asked(host: SshHost, declared: DeclaredHost, facts: MachineFacts) -> MachineFacts:
    access = declared.access
    # The user's own shell may have another language, and its start-up files may print something.
    printed, _begin, text = host.run(["sh", "-c", _FIRST]).stdout.rpartition(f"{_BEGIN}\n")
    if printed:
        raise TestbedError(
            f"each command's output begins with {printed.strip()[:100]!r}: a start-up file of {access.user}'s shell, "
            "such as .bashrc, prints it; it may print only in a terminal"
        )
    lines = [*text.split("\n"), "", "", "", ""]
    python = bool(lines[0].strip())
    _empty, uid, connection, sudo = lines[1:5] if python else lines[0:4]
    refused = (sudo.strip() or "") if access.sudo else ""
    if not access.sudo and uid.strip() != "0":
        refused = f"{access.user} is not root, and sudo is false"
    words = connection.split()
    port = int(words[3]) if len(words) == 4 else access.port
    facts = replace(facts, python=python, sudo=refused, ssh_port=port, clock=measure_offset(host))
    if not python:
        return facts
    impaired = any(side.impairment for nic in declared.nics for side in nic.sides)
    config = {
        "programs": PROGRAMS,
        "java": access.java,
        "trials": {**TRIALS, "netem": NETEM} if impaired else TRIALS,
        "folder": access.folder,
        "ports": ports_of(declared),
        "devices": [nic.name for nic in declared.nics],
    }
    return replace(facts, survey=ask(host, "survey", config, sudo=access.sudo and not refused))


def _with_silence(
    declared: DeclaredHost, facts: MachineFacts, addresses: Mapping[str, Sequence[str]]
) -> tuple[str, MachineFacts]:
    """Return the facts with the data addresses that do not answer: others from the machine, its own from here."""
    others = [
        (address, CLIENT_PORT) for name, of in addresses.items() if name != declared.name for address in of if address
    ]
    host = SshHost(declared.name, ssh_address(declared.access, facts.keys), connect_timeout_s=CONNECT_S)
    try:
        silent = ask(host, "reach", {"addresses": others, "timeout_s": REACH_S})["silent"]
    except TestbedError as error:
        return declared.name, replace(facts, unreachable=str(error))
    finally:
        host.close()
    own = addresses[declared.name][:1]
    unseen = {address: why for address in own if address and (why := _silence(address))}
    return declared.name, replace(facts, silent=silent, unseen=unseen)


def _silence(address: str) -> str:
    try:
        socket.create_connection((address, CLIENT_PORT), timeout=REACH_S).close()
    except ConnectionRefusedError:
        return ""
    except OSError as error:
        return str(error)
    return ""
