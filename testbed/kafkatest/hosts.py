"""The hosts of the system tests: a testbed of clients with a JDK, Kafka's folders under /opt, and the tests' login."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from testbed.errors import UsageError
from testbed.hosts.host import in_parallel
from testbed.kafkatest.layout import KafkaHome
from testbed.provision import state as states
from testbed.provision.containers import Engine
from testbed.provision.plan import Equipment, host_names
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.runner.cluster_file import cluster_file
from testbed.software.image import made_image
from testbed.software.system_tests import RECIPE, USER
from testbed.topology.host import DeclaredHost, Role
from testbed.topology.links import Nic
from testbed.topology.model import Topology

CAPABILITIES = ("NET_ADMIN", "NET_RAW", "SYS_PTRACE")
"""iptables and tc of Trogdor's faults; jcmd of another user's process."""
JVMS: Mapping[str, Mapping[str, str]] = {
    "light": {"KAFKA_JVM_PERFORMANCE_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.awt.headless=true"},
    "kafka": {},
}
"""Flags that Kafka's scripts give every JVM. `light` starts in half the CPU time; `kafka` are the scripts' own."""


def topology_of(hosts: int, rate_bps: int) -> Topology:
    """Return the topology: `hosts` clients in one rack, each with a NIC of `rate_bps` both ways. Pure."""
    nic = Nic.symmetric(rate_bps)
    return Topology(
        "kafkatest",
        tuple(DeclaredHost(f"knode{number:02d}", Role.CLIENT, "r1", nic) for number in range(1, hosts + 1)),
        description="Hosts of Apache's system tests.",
    )


def make_hosts(
    name: str,
    topology: Topology,
    homes: Sequence[KafkaHome],
    jvm: str,
    ephemeral: bool,
    progress: Callable[[str], None],
) -> Testbed:
    """Return a testbed of ready hosts; on failure nothing is left. Raise `UsageError` when the name is in use."""
    if states.load(states.check_name(name)) is not None:
        raise UsageError(f"--name {name}: there is such a testbed; `testbed down {name}`, or give another name")
    equipment = Equipment(
        made_image(RECIPE),
        {home.jars: home.mounted for home in homes},
        users=(USER,),
        capabilities=CAPABILITIES,
        environment=JVMS[jvm],
    )
    testbed = Testbed.up(topology, name=name, ephemeral=ephemeral, equipment=equipment, progress=progress)

    def install(host: str) -> None:
        for home in homes:
            testbed.hosts[host].run(home.install(USER), stdin=home.scripts, timeout_s=120.0)

    try:
        in_parallel(testbed.hosts, install)
    except BaseException:
        testbed.close()
        remove_hosts(name)
        raise
    progress(f"{len(testbed.hosts)} hosts with {', '.join(f'{home.folder} ({home.version})' for home in homes)}")
    return testbed


def remove_hosts(name: str) -> None:
    """Remove the testbed, wholly or partly made; do nothing when there is none."""
    with closing(Engine()) as engine, states.lock(name, wait=True):
        remove(engine, name)


def kafkatest_cluster(testbed: Testbed) -> dict[str, Any]:
    """Return the cluster file of these hosts: the tests log in as their own user, and no node has a type.

    SSH uses the data NIC. Trogdor takes the address of SSH for that of Kafka: it would cut off the wrong network.
    """
    document = cluster_file(testbed)
    for node in document["nodes"]:
        del node["node_type"]
        node["ssh_config"] |= {"user": USER, "hostname": node["externally_routable_ip"]}
    return document


def names_file(testbed: Testbed, before: str) -> str:
    """Return the content of /etc/hosts for ducktape's process: the machine's own, `before`, and the hosts' names."""
    lines = [f"{address} {name}" for name, address in host_names(testbed.topology, testbed.plan).items()]
    return "\n".join([before.rstrip("\n"), *lines, ""])
