"""The status of a testbed: the processes that run, the servers that answer, and differences from the topology."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from testbed.defects.parse import in_words
from testbed.errors import TestbedError
from testbed.hosts.host import in_parallel
from testbed.network.apply import broken_links, shaping_differences
from testbed.provision.liveness import why_not_whole
from testbed.provision.state import ssh_hosts
from testbed.provision.testbed import Testbed
from testbed.topology.host import DeclaredHost, Role
from testbed.topology.links import Link
from testbed.units import format_bit_rate

ANSWER_S = 5.0
"""A host that takes longer, in seconds, does not answer."""
BROKERS_S = 5.0


@dataclass(frozen=True, slots=True)
class ClusterObservation:
    """The observations of a testbed."""

    kafka: Mapping[str, int | None] = field(default_factory=dict)
    """Host → the process number of its server, if any; only hosts that answered."""
    stores: Mapping[str, str] = field(default_factory=dict)
    """Host → why its object store's server is not ready; empty: it is ready."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Host → why it did not answer."""
    unfenced: frozenset[int] = frozenset()
    """Node ids of the brokers that serve."""
    shaping: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    faults: Sequence[Mapping[str, Any]] = ()
    """The faults that are active: id, fault, since, owner."""
    problems: tuple[str, ...] = ()
    """Items that could not be observed, and why."""


def status(testbed: Testbed, faults: Sequence[Mapping[str, Any]], problems: Sequence[str] = ()) -> dict[str, Any]:
    """Return the status of a testbed, which may be incomplete; `ok` when everything is as declared.

    `faults` are the active faults as documents; `problems` has the reasons why faults could not be read.
    """
    found = look(testbed)
    return describe(testbed, replace(found, faults=faults, problems=(*found.problems, *problems)))


def look(testbed: Testbed) -> ClusterObservation:
    """Observe a testbed and return the observations, with the items that could not be observed. Takes at most 20 s."""
    pids = testbed.places()
    kafka, silent = _ask_hosts(testbed, pids)
    ended = why_not_whole(testbed.engine, testbed.state)
    problems = [ended] if ended else []
    stores: dict[str, str] = {}
    try:
        if testbed.topology.objectstores:
            store = testbed.objectstore
            stores = dict(zip(store.names, in_parallel(store.names, store.silence), strict=True))
    except TestbedError as error:
        problems.append(str(error))
    unfenced: frozenset[int] = frozenset()
    with suppress(TestbedError), testbed.admin(timeout_s=BROKERS_S) as admin:
        # Brokers of a cluster that does not answer are reported as fenced.
        unfenced = frozenset(broker.id for broker in admin.cluster().brokers)
    shaping: list[str] = []
    links: tuple[str, ...] = ()
    try:
        links = broken_links(testbed.name, testbed.topology, pids)
        shaping = shaping_differences(testbed.topology, pids)
    except TestbedError as error:
        problems.append(f"the network could not be read: {error}")
    return ClusterObservation(kafka, stores, silent, unfenced, tuple(shaping), links, problems=tuple(problems))


def _ask_hosts(testbed: Testbed, running: Collection[str]) -> tuple[dict[str, int | None], dict[str, str]]:
    """Return the server's process of each host that answers, and why others do not; ask only the `running` hosts."""
    hosts = ssh_hosts(testbed.state, testbed.topology, testbed.plan, connect_timeout_s=ANSWER_S)
    kafka: dict[str, int | None] = {}
    silent: dict[str, str] = {}

    def ask(host: DeclaredHost) -> None:
        if host.name not in running:
            silent[host.name] = "its container does not run"
            return
        try:
            hosts[host.name].run(["true"], timeout_s=ANSWER_S)
            daemon = testbed.daemon(host.name)
            kafka[host.name] = daemon.pid() if daemon is not None else None
        except TestbedError as error:
            silent[host.name] = str(error)
        finally:
            hosts[host.name].close()

    in_parallel(testbed.topology.hosts, ask)
    return kafka, silent


def describe(testbed: Testbed, seen: ClusterObservation) -> dict[str, Any]:
    """Return the observation together with the declared values, as plain data. Pure."""
    hosts = [_host(testbed, host, seen) for host in testbed.topology.hosts]
    whole = all(host["answers"] and not {False} & {host["running"], host["unfenced"], host["ready"]} for host in hosts)
    broken = in_words(testbed.state.defects)
    problems = list(seen.problems)
    if half := testbed.state.half_changed:
        problems.append(f"it has {half}: `testbed down {testbed.name}` and `testbed up` make it again")
    wrong = (*seen.shaping, *seen.links, *seen.faults, *broken, *problems)
    return {
        "name": testbed.name,
        "ok": whole and not wrong,
        "bootstrap": list(testbed.bootstrap),
        "hosts": hosts,
        "uplinks": [{"rack": rack, **_rates(link)} for rack, link in testbed.topology.uplinks.items()],
        "shaping": list(seen.shaping),
        "links": list(seen.links),
        "faults": [dict(fault) for fault in seen.faults],
        "defects": broken,
        "silent": dict(sorted(seen.silent.items())),
        "stores": {host: why for host, why in sorted(seen.stores.items()) if why},
        "problems": problems,
    }


def _rates(link: Link) -> dict[str, int]:
    return {"transmit_bps": link.tx_bps, "receive_bps": link.rx_bps}


def _host(testbed: Testbed, host: DeclaredHost, seen: ClusterObservation) -> dict[str, Any]:
    serves = host.role is not Role.CLIENT and host.name not in seen.silent
    return {
        "name": host.name,
        "role": host.role.value,
        "rack": host.rack,
        "machine": host.machine,
        "management": str(testbed.plan.management_ip(host.name)),
        "answers": host.name not in seen.silent,
        "nics": [
            {
                "name": nic.name,
                "use": nic.use.value,
                "address": str(testbed.plan.data_ip(host.name, number)),
                **_rates(nic),
            }
            for number, nic in enumerate(host.nics)
        ],
        "kafka": testbed.state.kafka.get(host.name),
        "jvm": host.jvm.in_force if host.role.runs_kafka else None,
        "running": seen.kafka.get(host.name) is not None if serves else None,
        "unfenced": host.node_id in seen.unfenced if host.is_broker else None,
        "ready": not seen.stores.get(host.name) if host.role is Role.OBJECTSTORE else None,
    }


def rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of a status: host, role, rack, NICs, Kafka, whether its server runs, and whether it serves."""
    return [
        (
            host["name"],
            host["role"],
            host["rack"],
            "; ".join(_nic(nic, named=len(host["nics"]) > 1) for nic in host["nics"]),
            host["kafka"] or "-",
            _runs(host),
            _serves(host),
        )
        for host in found["hosts"]
    ]


def _runs(host: Mapping[str, Any]) -> str:
    if host["running"] is None:
        return "-" if host["role"] == Role.CLIENT else "?"
    return "yes" if host["running"] else "no"


def _serves(host: Mapping[str, Any]) -> str:
    if host["ready"] is not None:
        return "ready" if host["ready"] else "not ready"
    return {True: "unfenced", False: "fenced", None: "-"}[host["unfenced"]]


def _nic(nic: Mapping[str, Any], *, named: bool) -> str:
    words = f"{nic['name']} {nic['address']}" if named else nic["address"]
    return f"{words} {rates_in_words(nic)}"


def rates_in_words(link: Mapping[str, Any]) -> str:
    """Return `400mbit tx 100mbit rx` for a NIC or an uplink of a status."""
    return f"{format_bit_rate(link['transmit_bps'])} tx {format_bit_rate(link['receive_bps'])} rx"


def remarks(found: Mapping[str, Any]) -> list[str]:
    """Return a line for each difference from the declared testbed."""
    lines = [f"{host} does not answer: {why}" for host, why in found["silent"].items()]
    lines += [f"the object store's server on {host} is not ready: {why}" for host, why in found["stores"].items()]
    lines += [f"shaping differs: {difference}" for difference in found["shaping"]]
    lines += found["links"]
    lines += [f"fault {f['id']}: {f['fault']}, since {f['since']}, by {f['owner']}" for f in found["faults"]]
    lines += [f"broken on purpose: {defect}" for defect in found["defects"]]
    return lines + list(found["problems"])
