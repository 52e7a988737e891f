"""What a testbed is doing now."""

from typing import Any

from testbed.errors import TestbedError
from testbed.provision.testbed import Testbed
from testbed.units import format_bit_rate


def status(testbed: Testbed) -> dict[str, Any]:
    """Per host what runs on it; where the shaping differs; `ok` when everything is as declared."""
    try:
        with testbed.admin() as admin:
            unfenced = {broker.id for broker in admin.cluster().brokers}
    except TestbedError:
        unfenced = set()
    hosts: list[dict[str, Any]] = []
    ok = True
    for host in testbed.topology.hosts:
        pid = testbed.node(host.name).pid() if host.node_id is not None else None
        serving = host.node_id in unfenced if host.is_broker else None
        ok = ok and (host.node_id is None or pid is not None) and serving is not False
        hosts.append(
            {
                "name": host.name,
                "role": host.role.value,
                "rack": host.rack,
                "management": str(testbed.plan.management_ip(host.name)),
                "data": str(testbed.plan.data_ip(host.name)),
                "nic": {"transmit_bps": host.nic.tx_bps, "receive_bps": host.nic.rx_bps},
                "kafka": testbed.state.kafka.get(host.name),
                "running": pid is not None,
                "unfenced": serving,
            }
        )
    shaping = testbed.shaping_differences()
    return {
        "name": testbed.name,
        "ok": ok and not shaping,
        "bootstrap": list(testbed.bootstrap),
        "hosts": hosts,
        "shaping": shaping,
        "hosts_table": [
            (
                host["name"],
                host["role"],
                host["rack"],
                f"{host['data']} {format_bit_rate(host['nic']['transmit_bps'])} tx"
                f" {format_bit_rate(host['nic']['receive_bps'])} rx",
                host["kafka"] or "-",
                "yes" if host["running"] else "no",
                {True: "unfenced", False: "fenced", None: "-"}[host["unfenced"]],
            )
            for host in hosts
        ],
    }
