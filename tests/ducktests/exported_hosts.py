"""A ducktest on ducktape's own `JsonCluster`, with nothing of this project but an exported cluster file."""

from ducktape.mark.resource import cluster
from ducktape.services.service import Service
from ducktape.tests.test import Test


class ShapedHosts(Service):
    """Takes hosts; starts nothing."""

    def start_node(self, node, **_options):
        node.account.ssh("true")

    def stop_node(self, node, **_options):
        node.account.ssh("true")

    def clean_node(self, node, **_options):
        node.account.ssh("rm -f /tmp/ducktape-was-here")


class ExportedHostsTest(Test):
    """Hosts of a testbed that is up, reached over SSH and SFTP."""

    @cluster(num_nodes=3)
    def test_hosts_have_their_shaped_nics(self):
        hosts = ShapedHosts(self.test_context, 3)
        hosts.start()
        seen = {}
        for node in hosts.nodes:
            [line] = node.account.ssh_capture("ip -br addr show data0")
            assert node.account.externally_routable_ip in line, line
            assert "htb" in "".join(node.account.ssh_capture("tc qdisc show dev data0"))
            node.account.create_file("/tmp/ducktape-was-here", node.account.hostname)
            seen[node.account.hostname] = "".join(node.account.ssh_capture("cat /tmp/ducktape-was-here; hostname"))
        assert seen == {name: f"{name}{name}\n" for name in ("b1", "b2", "b3")}
        return {"hosts": sorted(seen)}
