from types import SimpleNamespace

from testbed.hosts import CommandResult
from testbed.network.addresses import AddressPlan
from testbed.probes.brokers import connections_bytes, watch_other_clients, watch_stores
from testbed.topology import loads

HOSTS = (
    "{name: t, kafka: {version: 4.3.1}, defaults: {nic: {rate: 400mbit}},"
    " hosts: {b1: {role: both}, s1: {role: objectstore, nics: {data0: {}, more0: {}}}, s2: {role: objectstore}}}"
)


class FakeRecorder:
    def __init__(self):
        self.watched = {}

    def watch_host(self, host, *, devices, **other):
        self.watched[host] = devices
        assert other == {"s3_port": 9000}


def test_every_server_is_sampled_and_nobody_else():
    topology, recorder = loads(HOSTS), FakeRecorder()
    watch_stores(recorder, topology, {host.name: host.name for host in topology.hosts})
    assert recorder.watched == {"s1": ["data0", "more0"], "s2": ["data0"]}


CONNECTIONS = """\
0      0      [::ffff:198.19.3.12]:9000 [::ffff:198.19.3.11]:40000 cubic rto:204 bytes_acked:70 bytes_received:5000 segs_in:9
0      0      [::ffff:198.19.3.12]:9000  [::ffff:198.19.3.1]:40001 cubic rto:204 bytes_acked:70 bytes_received:5000 segs_in:9
0      0             198.19.3.12:9000         198.19.3.14:40002 bbr bytes_sent:999 bytes_retrans:1 bytes_acked:300 segs_out:4
0      0                [::ffff:127.0.0.1]:9000   [::ffff:127.0.0.1]:40004 cubic bytes_acked:9000 bytes_received:100

"""  # noqa: E501 - as `ss` prints it


def test_the_bytes_of_a_connection_are_counted_by_its_client():
    assert connections_bytes(CONNECTIONS, ["198.19.3.11", "127.0.0.1"]) == {
        "198.19.3.1 port 40001": 5070,
        "198.19.3.14 port 40002": 300,
    }
    assert connections_bytes("", []) == {}


def test_other_clients_of_a_server_are_all_but_brokers_and_servers_also_one_that_joins_later():
    topology = loads(HOSTS.replace("s2: {role: objectstore}", "s2: {role: objectstore}, load: {role: client}"))
    polls, commands = {}, []

    def run(command, *, timeout_s, check):
        commands.append(command)
        listed = "".join(
            f"0 0 198.19.3.12:9000 198.19.3.{n}:4000{n} cubic bytes_acked:{n}\n" for n in (1, 11, 13, 14, 15)
        )
        return CommandResult("ss", 0, listed, "", 0.0)

    hosts = {name: SimpleNamespace(name=name, run=run) for name in ("s1", "s2")}
    recorder = SimpleNamespace(poll=lambda name, _interval_s, look: polls.setdefault(name, look))
    watch_other_clients(recorder, topology, hosts, AddressPlan(3, (*topology.by_number, "b2")))
    assert set(polls) == {"clients of s1", "clients of s2"}
    found = {(s.host, s.metric, s.label): s.value for s in polls["clients of s1"]()}
    assert found == {
        ("s1", "s3.others.bytes", "198.19.3.1 port 40001"): 1.0,
        ("s1", "s3.others.bytes", "198.19.3.14 port 400014"): 14.0,
    }
    assert commands == [["ss", "-tinHO", "state", "established", "sport = :9000"]]
