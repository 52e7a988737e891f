"""The grammar of the prompt: what a line means, what is wrong with it, and what completes it."""

from types import SimpleNamespace

import pytest

from testbed.cli.prompt.catalogue.guidance import GROUPS
from testbed.cli.prompt.dialog import grammar
from testbed.cli.prompt.vocabulary import Vocabulary
from testbed.errors import UsageError
from testbed.faults import kinds
from testbed.topology.find import find

GRAMMAR = grammar()
NAMES = Vocabulary.of(find("three-brokers"), lambda: ("orders", "events", "__internal"), lambda: (3, 7), GRAMMAR.names)
STORES = Vocabulary.of(find("s3"), lambda: (), lambda: (), GRAMMAR.names)
RACKS = Vocabulary.of(find("two-racks-narrow-uplink"), lambda: (), lambda: (), GRAMMAR.names)


def parsed(line, names=NAMES):
    found = GRAMMAR.parse(line, names)
    return found.command.name, found.values


@pytest.mark.parametrize(
    ("line", "name", "values"),
    [
        ("hosts", "hosts", {}),
        ("move orders from 1 to 2 throttle 5MB/s", "move",
         {"move": ("orders",), "from": 1, "to": (2,), "throttle": 5_000_000}),
        ("move orders,events to b2,broker-3", "move", {"move": ("orders", "events"), "to": (2, 3)}),
        ("move * to 3", "move", {"move": ("orders", "events"), "to": (3,)}),
        ("move orders to 2 throttle 1MB/s from 1", "move",
         {"move": ("orders",), "to": (2,), "throttle": 10**6, "from": 1}),
        ("move orders to 2 at-once 4", "move", {"move": ("orders",), "to": (2,), "at-once": 4}),
        ("throttle", "throttle", {}),
        ("throttle 8MB/s", "throttle", {"throttle": 8_000_000}),
        ("throttle none", "throttle", {"throttle": None}),
        ("create new partitions 6 replicas 2", "create", {"create": "new", "partitions": 6, "replicas": 2}),
        ("produce orders 1000 × 1KiB", "produce", {"produce": "orders", "count": 1000, "×": 1024}),
        ("produce orders 1000 x 1KiB acks 1", "produce", {"produce": "orders", "count": 1000, "×": 1024, "acks": "1"}),
        ('b1 run echo  "a   b"', "run", {"subject": "b1", "run": 'echo  "a   b"'}),
        ("broker-1 rate 50mbit", "rate", {"subject": "b1", "rate": "50mbit"}),
        ("b1 kill", "kill", {"subject": "b1"}),
        ("b1 broker-kill", "broker-kill", {"subject": "b1"}),
        ("nic-rate host=b2 rate=50mbit", "nic-rate", {"nic-rate": "host=b2 rate=50mbit"}),
        ("heal 3", "heal", {"heal": 3}),
        ("heal b2", "heal", {"heal": "b2"}),
        ("heal", "heal", {}),
        ("watch 10s", "watch", {"watch": 10.0}),
        ("help move", "help", {"help": "move"}),
        ("  exit ", "exit", {}),
    ],
)  # fmt: skip
def test_a_line_is_a_command_with_its_values(line, name, values):
    assert parsed(line) == (name, values)


@pytest.mark.parametrize("line", ["", "   ", "# a comment", "  # hosts"])
def test_a_line_without_a_command_is_none(line):
    assert GRAMMAR.parse(line, NAMES) is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hsots", "no command or host 'hsots'; did you mean hosts?"),
        ("b9 kill", "hosts are b1, b2 or b3"),
        ("b1", "b1: a command is missing"),
        ("b1 kil", "'kil': b1 has no such command"),
        ("b1 kil", "did you mean kill?"),
        ("b1 kill now", "'now': the command ends before it"),
        ("move order to 2", "no topic 'order'; there are orders, events or __internal; did you mean orders?"),
        ("move orders form 1 to 2", "'form': expected from or to; did you mean from?"),
        ("move orders from 1", "to BROKERS is missing"),
        ("move orders from 9 to 2", "no broker '9'; there are 1, 2 or 3"),
        ("move orders to 2,b2", "names a broker twice"),
        ("move orders to 2 throttle 5mbit", "5mbit is a bit rate, not a byte rate"),
        ("move orders to 2 throttle 5", "has no unit"),
        ("move orders to 2 throttel 5MB/s", "did you mean throttle?"),
        ("move orders to 2 throttle 5MB/s throttle 6MB/s", "'throttle': expected"),
        ("create orders partitions 6 replicas 2", "there is a topic 'orders' already"),
        ("create a/b partitions 6 replicas 2", "is no topic's name"),
        ("create new partitions 0 replicas 2", "'0' is not a whole number of 1 or more"),
        ("heal 4", "no fault 4; active are 3 or 7"),
        ("heal b9", "no host or rack 'b9'"),
        ("throttle fast", "or none"),
        ("help mvoe", "no command 'mvoe'; did you mean move?"),
        ("b1 run", "COMMANDLINE… is missing"),
    ],
)
def test_a_mistake_is_named_with_the_nearest_word(line, message):
    with pytest.raises(UsageError) as error:
        GRAMMAR.parse(line, NAMES)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ho", ["hosts"]),
        ("mov", ["move", "moves"]),
        ("move ", ["__internal", "events", "orders"]),
        ("move orders,e", ["orders,events"]),
        ("move orders ", ["from", "to"]),
        ("move orders from 1 to 2,b", ["2,b1", "2,b2", "2,b3", "2,broker-1", "2,broker-2", "2,broker-3"]),
        ("move orders to 2 th", ["throttle"]),
        ("move orders to 2 throttle 5M", ["5MB/s", "5MiB/s"]),
        ("move orders to 2 throttle 5", ["5B/s", "5GB/s", "5GiB/s", "5KiB/s", "5MB/s", "5MiB/s", "5kB/s"]),
        ("b1 ki", ["kill"]),
        ("b1 rate ", ["declared", "direction=", "nic=", "rate="]),
        ("b1 rate 5", ["5bit", "5gbit", "5kbit", "5mbit"]),
        ("b1 rate 50mbit direction=t", ["direction=transmit"]),
        ("nic-cut hosts=b1,b", ["hosts=b1,b2", "hosts=b1,b3"]),
        ("nic-rate ", ["direction=", "host=", "nic=", "rate="]),
        ("nic-rate host=", ["host=b1", "host=b2", "host=b3"]),
        ("produce orders 10 ", ["x"]),
        ("heal ", ["3", "7", "b1", "b2", "b3", "broker-1", "broker-2", "broker-3", "r1"]),
        ("help mov", ["move", "moves"]),
        ("throttle n", ["none"]),
        ("nonsense ", []),
        ("b1 run ls ", []),
    ],
)
def test_a_word_is_completed(line, words):
    assert GRAMMAR.complete(line, NAMES) == words


def test_every_fault_has_its_own_name_and_one_after_its_host_or_rack():
    for name in kinds():
        assert GRAMMAR.named(name), name
    assert parsed("left rate 50mbit", RACKS) == ("rate", {"subject": "left", "rate": "50mbit"})
    assert parsed("left cut", RACKS)[0] == "cut"


def test_a_short_name_is_that_of_the_hosts_own_server():
    (store,) = [host.name for host in STORES.declared.objectstores][:1]
    command = GRAMMAR.parse(f"{store} down", STORES).command
    assert "object store" in command.summary
    assert "no link" in GRAMMAR.parse(f"{store} nic-down", STORES).command.summary
    with pytest.raises(UsageError, match="has no such command"):
        GRAMMAR.parse(f"{store} kill", STORES)


def test_a_name_that_a_host_has_is_that_host():
    names = Vocabulary({"broker-1": "broker-1", "b": "b"}, {"broker-1": 2, "b": 1})
    assert parsed("heal broker-1", names) == ("heal", {"heal": "broker-1"})


def test_help_lists_every_group_and_names_each_command_once():
    session = SimpleNamespace(grammar=GRAMMAR, lines=[])
    session.say = session.lines.append
    GRAMMAR.parse("help", NAMES).command.run(session, {})
    text = "\n".join(session.lines)
    assert {each.group for each in GRAMMAR.commands if each.group} == set(GROUPS)
    for command in GRAMMAR.commands:
        if command.group:
            assert f"  {command.text}" in text and command.summary in text
    session.lines.clear()
    GRAMMAR.parse("help nic-rate", NAMES).command.run(session, {"help": "nic-rate"})
    assert session.lines[0].startswith("nic-rate host=… rate=…")


def test_no_command_has_two_meanings():
    plain = [each.name for each in GRAMMAR.commands if not each.about_subject]
    assert len(plain) == len(set(plain))
    for names in (NAMES, STORES, RACKS):
        for subject in names.subjects:
            about = [each.name for each in GRAMMAR._of_subject(subject, names)]
            assert len(about) == len(set(about)), (subject, about)
