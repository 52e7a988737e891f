from testbed.probes.brokers import watch_stores
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
