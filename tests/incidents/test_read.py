"""Incident files: what they mean, and that every mistake is told with its place."""

from pathlib import Path

import pytest

from testbed.document import FormError
from testbed.errors import UsageError
from testbed.incidents.actions import kinds as action_kinds
from testbed.incidents.actions import parse_action
from testbed.incidents.describe import describe_file
from testbed.incidents.expectations import kinds as expectation_kinds
from testbed.incidents.expectations import parse_expectation
from testbed.incidents.phrases import PhraseError
from testbed.incidents.read import find, load, loads, ready_incidents
from testbed.incidents.trigger import At, Moved, When
from tests.incidents.files import SMALL, small


def mistakes(text):
    with pytest.raises(FormError) as refused:
        loads(text, "x.yaml")
    return [str(problem) for problem in refused.value.problems]


def test_a_file_holds_two_practices():
    file = small()
    assert [(e.name, str(e.trigger)) for e in file.faulty.entries] == [
        ("move", "at 2s"),
        ("throttle", "at 3s"),
        ("lost", "after move 50%"),
        ("alarm", "when isr of clicks < 2"),
        ("entry 5", "at 0s"),
    ]
    assert [(e.name, str(e.trigger)) for e in file.remedy.entries] == [
        ("move", "at 4s"),
        ("throttle", "at 1s"),
        ("alarm", "when isr of clicks < 2"),
        ("entry 5", "at 0s"),
        ("clean-up", "after move done"),
    ]
    assert (file.faulty.fails, file.remedy.fails) == (("throttle-removed",), ())
    assert str(file.remedy.entries[0].actions[0]) == "move orders to b1 throttled at 5MB/s"


def test_state_and_load_are_filled_in():
    incident = small().faulty
    orders, clicks = incident.state.topics
    assert (orders.placement, orders.records, orders.bytes) == ((("b1", "b2"),) * 4, 245, 4 * 245 * 4096)
    assert (clicks.placement, clicks.records, dict(clicks.configs)) == (
        (("b1", "b2"), ("b2", "b3")),
        0,
        {"min.insync.replicas": "2"},
    )
    assert incident.load is not None
    assert (incident.load.rate_bytes_per_s, incident.load.topic) == (1_000_000, "clicks")
    alarm = incident.entries[3]
    assert (alarm.delay_s, alarm.optional, alarm.deadline_s, len(alarm.actions)) == (2.0, True, 60.0, 2)
    assert incident.entries[2].deadline_s == 30.0


def test_a_varied_parameter_holds_for_both_practices_also_over_the_remedys_own():
    file = small(throttle="2MB/s", hurry="9s")
    assert [str(e.trigger) for e in (file.faulty.entries[1], file.remedy.entries[1])] == ["at 9s", "at 9s"]
    assert str(file.faulty.entries[1].actions[0]) == "throttle set 2MB/s for orders"
    with pytest.raises(UsageError, match="there is no parameter throtle; allowed: throttle or hurry; did you mean thr"):
        small(throtle="1MB/s")


def test_triggers():
    entries = small().faulty.entries
    assert [e.trigger for e in entries[:4]] == [At(2.0), At(3.0), Moved(0.5), When("isr", "<", 2, "clicks")]


@pytest.mark.parametrize(
    ("wrong", "right", "told"),
    [
        (
            "do: mov orders to b1, b3",
            "do: move orders to b1, b3",
            "16:9: timeline[0].do: mov orders to b1, b3 is not an",
        ),
        (
            "to b1, b9",
            "to b1, b3",
            "timeline[0].do: move orders to b1, b9: there is no broker b9; allowed: b1, b2 or b3",
        ),
        ("move order to", "move orders to", "there is no topic order; allowed: orders or clicks; did you mean orders?"),
        ("at: 2\n", "at: 2s\n", "15:9: timeline[0].at: 2 has no unit"),
        ("at: 2min", "at: 2s", "timeline[0].at: 120s is after the end; allowed: lasts, 60s"),
        (
            "$hury",
            "$hurry",
            "19:9: timeline[1].at: $hury is not a parameter; allowed: throttle or hurry; did you mean hurry?",
        ),
        (
            "broker-kil host=b3",
            "broker-kill host=b3",
            "timeline[2].do: broker-kil host=b3: broker-kil is neither an action",
        ),
        ("broker-kill host=b7", "broker-kill host=b3", "timeline[2].do: broker-kill host=b7: "),
        ("broker-kill hst=b3", "broker-kill host=b3", "timeline[2].do: broker-kill hst=b3: "),
        ("isr of clicks ~ 2", "isr of clicks < 2", "timeline[3].when: isr of clicks ~ 2 is not a condition"),
        ("irs < 2", "isr of clicks < 2", "timeline[3].when: irs is not a signal; allowed: isr, under_replicated"),
        ("isr of click < 2", "isr of clicks < 2", "timeline[3].when: there is no topic click; allowed"),
        ("move 150%", "move 50%", "timeline[2].after: 150% is not a share; allowed: 0% to 100%"),
        ("within: 30s\n    do: b", "within: 30s\n    when: isr < 1\n    do: b", None),
        (
            "no record lost",
            "no records lost",
            "32:9: timeline[4].expect[1]: no record lost is not an expectation; allowed: no records lost",
        ),
        (
            "within 90s",
            "within 40s",
            "timeline[0].expect: move done within 90s: would have to be watched until 92s",
        ),
        ("replicas: [b1, b4]", "replicas: [b1, b2]", "10:"),
        ("replicas: [b1, b1]", "replicas: [b1, b2]", "state.topics.orders.replicas: a host is given twice"),
        ("size: 4M,", "size: 4MB,", "state.topics.orders.size: 4M has an unknown unit"),
        ("to: orders}", "to: clicks}", "load.to: orders is filled already"),
        ("to: click}", "to: clicks}", "load.to: there is no topic click"),
        (
            "fails: [rate]",
            "fails: [throttle-removed]",
            "faulty.fails[0]: the timeline expects no rate; allowed: move-done, isr",
        ),
        (
            "drop: [lots]",
            "drop: [lost]",
            "remedy.drop[0]: there is no entry lots; allowed: move, throttle, lost or alarm",
        ),
        (
            "name: alarm\n      after",
            "name: clean-up\n      after",
            "remedy.add[0].name: alarm is the name of another entry",
        ),
        ("    mve: {", "    move: {", "remedy.replace.mve: there is no entry mve"),
        ("{hury: 1s}", "{hurry: 1s}", "remedy.parameters.hury: there is no parameter hury"),
        ("optional: yes", "optional: true", "timeline[3].optional: yes; allowed: true or false"),
        ("topology: three-broker\n", "topology: three-brokers\n", "3:11: topology: no topology 'three-broker'"),
        ("lasts: \n", "lasts: 60s\n", "4:7: lasts: nothing is given"),
        (
            "sumary: Too late.",
            "summary: Too late.",
            "faulty.sumary: unknown field sumary; allowed: summary or fails; did you",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(wrong, right, told):
    assert right in SMALL or told is None
    if told is None:
        return
    found = mistakes(SMALL.replace(right, wrong, 1))
    assert any(told in line for line in found), found
    assert all(line.startswith("x.yaml:") for line in found)
    assert len(found) == 1, found


def test_all_mistakes_are_told_at_once_in_order():
    text = SMALL.replace("size: 4MB", "size: 4").replace("at: 2s", "at: 2").replace("isr never", "irs never")
    found = mistakes(text)
    assert [line.split(":")[1] for line in found] == ["10", "15", "31"]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("{at: 1s, when: isr < 1, do: heal}", "at and when in one entry; allowed: one of at, when, after"),
        ("{at: 1s}", "nothing to do and nothing to expect; allowed: do, expect, or both"),
        ("{do: heal}", "it does not say when; allowed: at, when or after"),
        ("{at: 1s, within: 3s, do: heal}", "an entry without when or after needs no deadline"),
        ("{at: 1s, optional: true, do: heal}", "a time always comes"),
        ("{after: move of clicks 10%, do: heal}", "nothing in the timeline asks for that move"),
        ("{at: 1s, do: throttle set 0B/s}", "a throttle of nothing"),
        ("{at: 1s, expect: rate of orders on b3 transmit <= 1MB/s over 11s}", "counted where its logs grow"),
        ("{at: 1s, expect: not uplink-bound r1 receive}", "rack r1 has no uplink of its own rate"),
        ("{name: move, at: 1s, do: heal}", "move is the name of another entry; allowed: each once"),
    ],
)
def test_an_entry_that_makes_no_sense(entry, told):
    found = mistakes(SMALL.replace("timeline:\n", f"timeline:\n  - {entry}\n"))
    assert any(told in line for line in found), found


@pytest.mark.parametrize(
    "text", ["", "[]", "name: x", "a: [", "- 1", "timeline: 3", "state: {topics: 1}\ntimeline: {}"]
)
def test_what_is_no_incident_is_refused_whole(text):
    assert all("a topology is" not in line and "a topology needs" not in line for line in mistakes(text))


def test_paths():
    with pytest.raises(FormError, match="there is no such file"):
        load("topologies/incidents/nothing.yaml")
    with pytest.raises(UsageError, match="no incident 'move-befor-quota'.*did you mean move-before-quota"):
        find("move-befor-quota")


@pytest.mark.parametrize("name", ready_incidents())
def test_ready_incidents_load_and_can_be_described(name):
    file = find(name)
    assert file.faulty.name == name
    assert file.faulty.fails
    told = describe_file(file, 7)
    assert "the faulty practice (seed 7)" in told
    assert "the file foretells: every expectation is met" in told
    path = Path("topologies/incidents") / f"{name}.yaml"
    first = (Path(__file__).parents[2] / path).read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=incident.schema.json"


ACTIONS = [
    "move orders to b1",
    "move orders, clicks to b1, b3 throttled at 5MB/s",
    "throttle set 5MB/s",
    "throttle set 5MB/s for orders, clicks",
    "throttle raise to 20MB/s",
    "throttle remove",
    "restart b2",
    "elect-preferred",
    "elect-preferred orders",
    "cancel",
    "heal",
    "heal broker-kill",
    "broker-kill host=b2",
]
EXPECTATIONS = [
    "move done within 40s",
    "move of orders done within 90s",
    "throttle in force before the move",
    "throttle removed",
    "isr never below 1",
    "isr never below 2 of orders",
    "fully replicated at the end",
    "rate on b1 transmit <= 12MB/s over 11s",
    "rate of orders on b3 receive <= 6.5MB/s over 5s",
    "nic-bound b1 receive",
    "not nic-bound b1 transmit",
    "uplink-bound left transmit",
    "not uplink-bound left receive",
    "no records lost",
    "every record acknowledged",
    "produce latency of 99% <= 500ms",
]


@pytest.mark.parametrize("text", ACTIONS)
def test_actions_read_back_as_written(text):
    assert str(parse_action(text)) == text


@pytest.mark.parametrize("text", EXPECTATIONS)
def test_expectations_read_back_as_written(text):
    assert str(parse_expectation(text)) == text


def test_every_kind_of_sentence_is_tried_here():
    assert {parse_action(text).name for text in ACTIONS} == set(action_kinds())
    assert {parse_expectation(text).name for text in EXPECTATIONS} == set(expectation_kinds())


@pytest.mark.parametrize(
    "text", [3, ["a"], "", "restart", "throttle set", "throttle set 5", "move a to b, b", "heal x"]
)
def test_what_is_no_action(text):
    with pytest.raises(PhraseError, match="allowed|its form"):
        parse_action(text)


def test_an_action_begun_wrongly_is_told_how_it_is_written():
    with pytest.raises(PhraseError, match="throttle set 5: 5 has no unit.*; its form: throttle set RATE"):
        parse_action("throttle set 5")
    with pytest.raises(PhraseError, match=r"throttle of 5MB/s is not an action; allowed: throttle set RATE"):
        parse_action("throttle of 5MB/s")
    with pytest.raises(PhraseError, match="restart is not an action; allowed: restart HOST$"):
        parse_action("restart")


AUTOMQ = """\
name: shared
software: {automq: {path: automq.tgz}}
defaults: {nic: {rate: 400mbit}}
hosts: {b1: {role: both}, b2: {role: broker}, b3: {role: broker}, s1: {role: objectstore}}
"""


def test_what_the_software_would_accept_and_not_do_is_refused(tmp_path):
    (tmp_path / "shared.yaml").write_text(AUTOMQ)
    path = tmp_path / "small.yaml"
    path.write_text(SMALL.replace("three-brokers", "shared.yaml"))
    with pytest.raises(FormError) as refused:
        load(str(path))
    found = [str(problem) for problem in refused.value.problems]
    lacking = [line for line in found if "is not possible with the software of shared, which lacks" in line]
    told = {line.split("do: ")[-1].split(" is not possible")[0] for line in lacking}
    assert told == {
        "move orders to b1, b3",
        "move orders to b1 throttled at 5MB/s",
        "throttle set 5MB/s for orders",
        "throttle raise to 50MB/s",
    }
