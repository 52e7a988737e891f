"""docs/operating.md tells the truth: what it shows is printed, its options are those of the commands, files load."""

import re
from pathlib import Path

import pytest

from testbed.argument_parser import Parser
from testbed.cli.command import commands
from testbed.cli.throttle_report import estimate_text, event_text
from testbed.kafka.command_config import CommandConfig
from testbed.kafka.node import secure_protocol, server_properties
from testbed.kafka.types import TopicPartition
from testbed.network.addresses import AddressPlan
from testbed.reassignment.estimate import ClusterLoad, for_deadline
from testbed.reassignment.monitor import BrokerRate, MonitorReading
from testbed.reassignment.remaining_time import RemainingTime
from testbed.throttle.duration import Copy
from testbed.topology.find import loads
from tests.kafka.certificates import authority

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    return found


def indented(text):
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


def test_its_estimate_is_what_is_printed():
    copies = tuple(Copy(TopicPartition("t", p), 1, (3,), (2,), 660_000_000, 20_000.0) for p in range(100))
    quiet = {1: 2_000_000.0, 2: 4_000_000.0, 3: 2_000_000.0}
    observed = ClusterLoad(copies, 300, dict.fromkeys((1, 2, 3), 132_000_000_000), quiet, quiet, quiet, 10.0)
    told = estimate_text(for_deadline(observed, 7200, 1_000_000_000), nic_known=True)
    assert indented(told.rpartition("\n\n")[0]) in TEXT, told


def test_its_look_is_what_is_printed():
    quota = 14_080_000
    rates = (BrokerRate(1, "transmit", 13_950_000, quota), BrokerRate(2, "receive", 11_940_000, quota))
    remaining = RemainingTime(4090, 3910, 4290, 10_070_000)
    look = MonitorReading(0, 100, 31, 41_200_000_000, 0, rates, remaining, None, (), (), ())
    assert indented(event_text(look)) in TEXT, event_text(look)


def test_every_option_is_told():
    (command,) = [each for each in commands() if each.name == "throttle"]
    parser = Parser("testbed throttle")
    command.configure(parser)
    (actions,) = [action for action in parser._actions if action.dest == "action"]
    for name, action in actions.choices.items():
        assert f"`{name}`" in TEXT
        for option in action._option_string_actions:
            assert option in ("-h", "--help") or option in TEXT, option


def test_its_client_properties_are_read(tmp_path):
    path, ca = tmp_path / "client.properties", tmp_path / "ca.pem"
    ca.write_text(authority().pem)
    path.write_text(block("properties").replace("/etc/kafka/ca.pem", str(ca)), encoding="utf-8")
    config = CommandConfig.load(path)
    assert (config.protocol, config.mechanism, config.username) == ("SASL_SSL", "SCRAM-SHA-512", "admin")
    assert config.trusted == ca.read_text()


def test_its_topology_has_the_listener_that_it_promises():
    topology = loads(
        "name: secured\n"
        + block("yaml")
        + "defaults: {nic: {rate: 1gbit}}\nhosts:\n  b1: {role: both}\n  b2: {role: broker}\n"
    )
    plan = AddressPlan(3, ("b1", "b2"))
    properties = server_properties(topology, topology.host("b2"), plan)
    assert properties["listeners"].endswith(",SECURE://198.19.3.12:9095")
    assert properties["advertised.listeners"] == properties["listeners"]
    assert properties["listener.security.protocol.map"].endswith(",SECURE:SASL_SSL")


@pytest.mark.parametrize(
    ("names", "protocol"),
    [
        ((), None),
        (("ssl.keystore.type",), None),
        (("listener.name.client.ssl.keystore.type",), None),
        (("listener.name.secure.ssl.keystore.type",), "SSL"),
        (("listener.name.secure.sasl.enabled.mechanisms",), "SASL_PLAINTEXT"),
        (("listener.name.secure.plain.sasl.jaas.config", "listener.name.secure.ssl.client.auth"), "SASL_SSL"),
    ],
)
def test_the_protocol_follows_from_the_properties(names, protocol):
    assert secure_protocol(dict.fromkeys(names, "x")) == protocol
