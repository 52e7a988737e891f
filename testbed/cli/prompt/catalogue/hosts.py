"""Commands about the machines: hosts and links as they are now, and commands on a host."""

import sys
from functools import partial

from results.render import table
from testbed.cli.prompt.grammar import PromptCommand, Values
from testbed.cli.prompt.session import Session
from testbed.errors import UsageError
from testbed.faults.network import active_faults, differences, ports_of, uplink
from testbed.provision.status import remarks, rows, status
from testbed.topology.links import Link
from testbed.topology.model import Topology
from testbed.units import format_bit_rate

_LONGEST_S = 3600.0


def _hosts(session: Session, _values: Values) -> None:
    found = status(session.testbed, [entry.document() for entry in session.faults.list()])
    ids = {host.name: host.node_id for host in session.testbed.topology.hosts}
    lines = [(row[0], "–" if ids[row[0]] is None else ids[row[0]], *row[1:]) for row in rows(found)]
    session.say(table(("HOST", "ID", "ROLE", "RACK", "NICS", "KAFKA", "RUNS", "SERVES"), lines))
    for remark in remarks(found):
        session.say(remark)


def _links(session: Session, _values: Values) -> None:
    testbed = session.testbed
    faults = active_faults(testbed)
    now, down = testbed.topology, frozenset[str]()
    for fault in faults:
        now, down = fault.reshaped(now), down | fault.down(testbed.topology)
    losing = {port for fault in faults for port in fault.lost(testbed.topology, testbed.plan)}
    session.say(table(("LINK", "DEVICE", "TRANSMIT", "RECEIVE", "NOW"), link_rows(testbed.topology, now, down, losing)))
    for difference in differences(testbed, None):
        session.say(f"the kernel differs: {difference}")


def link_rows(
    declared: Topology, now: Topology, down: frozenset[str], losing: set[str]
) -> list[tuple[str, str, str, str, str]]:
    """Return a row for each NIC and each uplink: its declared rates, and what the faults make of them. Pure."""
    found = []
    for host in declared.hosts:
        nics = zip(ports_of(declared, host.name), host.nics, now.host(host.name).nics, strict=True)
        for port, nic, present in nics:
            state = "down" if port in down else _difference(nic, present)
            lossy = ", loses packets to some hosts" if port in losing else ""
            found.append((host.name, nic.name, *_rates(nic), state + lossy))
    for rack in declared.racks:
        link, present_link = declared.uplinks.get(rack), now.uplinks.get(rack)
        is_down = any(device in down for device in uplink(declared, rack))
        if link is None and present_link is None and not is_down:
            continue
        rates = ("unshaped", "unshaped") if link is None else _rates(link)
        found.append((f"rack {rack}", "uplink", *rates, "down" if is_down else _difference(link, present_link)))
    return found


def _rates(link: Link) -> tuple[str, str]:
    return format_bit_rate(link.tx_bps), format_bit_rate(link.rx_bps)


def _difference(declared: Link | None, present: Link | None) -> str:
    if present is None or present == declared:
        return "as declared"
    transmit, receive = _rates(present)
    return transmit if transmit == receive else f"{transmit} transmit, {receive} receive"


def _run(session: Session, values: Values) -> int:
    result = session.testbed.hosts[values["subject"]].run(values["run"], timeout_s=_LONGEST_S, check=False)
    sys.stdout.write(result.stdout)
    sys.stderr.write(result.stderr)
    return result.exit_status


def _shell(session: Session, values: Values) -> int:
    from testbed.cli.terminal import shell

    if not session.interactive:
        raise UsageError(f"a shell needs a terminal; in a script: {values['subject']} run COMMANDLINE")
    return shell(session.testbed.hosts[values["subject"]])


def _log(session: Session, values: Values) -> int:
    return session.command_line(["logs", session.testbed.name, values["subject"]])


def _nics(session: Session, _values: Values) -> int:
    return session.command_line(["nics", session.testbed.name])


def _status(session: Session, _values: Values) -> int:
    session.command_line(["status", session.testbed.name])
    return 0  # a difference is the answer here, not a failure of the command


def _watch(session: Session, values: Values) -> int:
    if session.interactive:
        session.remark("Ctrl-C ends the view")
    limit = [] if "watch" not in values else ["--for", f"{values['watch']:g}s"]
    if not limit and not session.interactive:
        raise UsageError("in a script the view needs its time: watch 10s")
    return session.command_line(["watch", session.testbed.name, *limit])


_command = partial(PromptCommand, group="The machines")
_on_host = partial(_command, applies=lambda subject, names: subject in names.hosts)
COMMANDS = [
    _command("hosts", "every host: its role, NICs and server, and what differs", _hosts),
    _command("links", "every NIC and uplink: declared rates, and its rate under the faults", _links),
    _command("status", "what `testbed status` prints", _status),
    _command("nics", "measure every NIC and uplink, 2 s each way", _nics),
    _command("watch [TIME]", "the live view, until Ctrl-C or for a time", _watch, "watch\nwatch 30s"),
    _on_host(
        "SUBJECT run COMMANDLINE…",
        "run a command on a host; the host's shell reads the rest of the line",
        _run,
        "b1 run ip addr show data0\nb1 run ss -tn | wc -l",
        shown="HOST run COMMANDLINE",
    ),
    _on_host("SUBJECT shell", "a root shell on a host", _shell, shown="HOST shell"),
    _on_host("SUBJECT log", "the end of the log of a host's server", _log, shown="HOST log"),
]
