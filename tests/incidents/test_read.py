"""Incident files: what they mean, and that every mistake is reported with its place."""

from pathlib import Path

import pytest
import yaml

from results.criteria.expectations import EXPECTATIONS
from testbed.cli.commands.replay import describe
from testbed.errors import UsageError
from testbed.incidents.actions import ACTIONS, InjectFault
from testbed.incidents.read import find, load, loads, ready_incidents
from testbed.yaml_document import FormError
from tests.incidents.files import SMALL, small


def mistakes(text):
    with pytest.raises(FormError) as refused:
        loads(text, "x.yaml")
    return [str(problem) for problem in refused.value.problems]


def test_a_file_holds_two_variants():
    file = small()
    assert [(e.name, str(e.trigger)) for e in file.broken.entries] == [
        ("move", "at 2s"),
        ("throttle", "at 3s"),
        ("lost", "after move 50%"),
        ("alarm", "when isr of clicks < 2"),
        ("entry 5", "at 0s"),
    ]
    assert [(e.name, str(e.trigger)) for e in file.fixed.entries] == [
        ("move", "at 4s"),
        ("throttle", "at 1s"),
        ("alarm", "when isr of clicks < 2"),
        ("entry 5", "at 0s"),
        ("clean-up", "after move done"),
    ]
    assert (file.broken.expected_failures, file.fixed.expected_failures) == (("throttle-removed",), ())
    assert str(file.fixed.entries[0].actions[0]) == "move orders to b1 throttled at 5MB/s"


def test_state_and_load_are_filled_in():
    incident = small().broken
    orders, clicks = incident.state.topics["orders"], incident.state.topics["clicks"]
    assert (orders.placement, orders.records_per_partition, orders.bytes) == (
        (("b1", "b2"),) * 4,
        245,
        4 * 245 * 4096,
    )
    assert (clicks.placement, clicks.records_per_partition, clicks.configs) == (
        (("b1", "b2"), ("b2", "b3")),
        0,
        {"min.insync.replicas": "2"},
    )
    assert [(load.produce, load.to) for load in incident.loads] == [(1_000_000, "clicks")]
    alarm = incident.entries[3]
    assert (alarm.delay_s, alarm.optional, alarm.deadline_s, len(alarm.actions)) == (2.0, True, 60.0, 2)
    assert incident.entries[2].deadline_s == 30.0


def test_a_varied_parameter_holds_for_both_variants_also_over_the_fixed_ones_own():
    file = small(throttle="2MB/s", hurry="9s")
    assert [str(e.trigger) for e in (file.broken.entries[1], file.fixed.entries[1])] == ["at 9s", "at 9s"]
    assert str(file.broken.entries[1].actions[0]) == "set throttle 2MB/s for orders"
    with pytest.raises(UsageError, match="there is no parameter throtle; allowed: throttle or hurry; did you mean thr"):
        small(throtle="1MB/s")


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        (
            "do: {mov: {topics: [orders], hosts: [b1, b3]}}",
            "do: {move: {topics: [orders], hosts: [b1, b3]}}",
            "16:10: timeline[0].do.mov: unknown field mov; allowed: move, set_throttle, change_throttle",
        ),
        (
            "hosts: [b1, b9]",
            "hosts: [b1, b3]",
            "16:47: timeline[0].do.move.hosts[1]: there is no broker b9; allowed: b1, b2 or b3",
        ),
        (
            "topics: [order], hosts: [b1, b3]",
            "topics: [orders], hosts: [b1, b3]",
            "16:26: timeline[0].do.move.topics[0]: there is no topic order; allowed: orders or clicks; did you mean",
        ),
        ("hosts: [b1, b1]", "hosts: [b1, b3]", "timeline[0].do.move.hosts: a host is given twice"),
        ("hots: [b1, b3]", "hosts: [b1, b3]", "unknown field hots; allowed: topics, hosts or throttle; did you mean"),
        ("at: 2\n", "at: 2s\n", "15:9: timeline[0].at: 2 has no unit"),
        ("at: 2min", "at: 2s", "timeline[0].at: 120s is after the end; allowed: lasts, 60s"),
        ("delay: 61s", "delay: 2s", "timeline[3].delay: 61s is after the end; allowed: lasts, 60s"),
        ("at: 2s\n    delay: 30s", "at: 2s", "move done within 40 s: would have to be watched until 72s"),
        ("produce: 0B/s", "produce: 1MB/s", "load: a load of nothing; allowed: 1B/s or more, or no load"),
        (
            "$hury",
            "$hurry",
            "19:9: timeline[1].at: $hury is not a parameter; allowed: throttle or hurry; did you mean hurry?",
        ),
        ("broker_kil:", "broker_kill:", "unknown field broker_kil; allowed: move, "),
        ("broker-kill:", "broker_kill:", "did you mean broker_kill?"),
        ("broker_kill: {host: b7}", "broker_kill: {host: b3}", "timeline[2].do.broker_kill: broker-kill host=b7: "),
        ("broker_kill: {hst: b3}", "broker_kill: {host: b3}", "unknown field hst; allowed: host; did you mean host?"),
        ("isr: {topic: clicks, blow: 2}", "isr: {topic: clicks, below: 2}", "did you mean below?"),
        ("isr: {topic: clicks}", "isr: {topic: clicks, below: 2}", "timeline[3].at.isr: not one comparison; allowed"),
        ("irs: {topic: clicks,", "isr: {topic: clicks,", "unknown field irs; allowed: time, move_progress, isr"),
        ("topic: click, below", "topic: clicks, below", "timeline[3].at.isr.topic: there is no topic click; allowed"),
        ("{move_progress: 150%}", "{move_progress: 50%}", "move_progress: 150% is not a share; allowed: 0% to 100%"),
        (
            "- record_intact: {}",
            "- records_intact: {}",
            "32:9: timeline[4].expect[1].record_intact: unknown field record_intact; allowed: move_done,",
        ),
        (
            "within: 90s",
            "within: 40s",
            "timeline[0].expect.move_done.within: move done within 90 s: would have to be watched until 92s",
        ),
        (
            "isr: {topic: orders, min: x}",
            "isr: {topic: orders, min: 1}",
            "isr.min: 'x' is not a count; allowed: a whole number",
        ),
        (
            "isr: {topic: orders, min: 0}",
            "isr: {topic: orders, min: 1}",
            "timeline[4].expect[0].isr.min: no ISR has fewer than 0 replicas, so this cannot fail; allowed: 1 or more",
        ),
        (
            "move: {name: moved, at: 4s",
            "move: {at: 4s",
            "fixed.replace.move.name: moved replaces move and has its name; allowed: leave it out",
        ),
        ("replicas: [b1, b4]", "replicas: [b1, b2]", "10:55: state.topics.orders.replicas[1]: there is no broker b4"),
        (
            "[[b1, b2], [b2, b9]]",
            "[[b1, b2], [b2, b3]]",
            "11:55: state.topics.clicks.replicas[1][1]: ",
        ),
        ("replicas: [b1, b1]", "replicas: [b1, b2]", "state.topics.orders.replicas: a host is given twice"),
        ("size: 4M,", "size: 4MB,", "state.topics.orders.size: 4M has an unknown unit"),
        ("to: orders}", "to: clicks}", "load.to: orders is filled already"),
        ("to: click}", "to: clicks}", "load.to: there is no topic click"),
        (
            "expected_failures: [rate]",
            "expected_failures: [throttle-removed]",
            "broken.expected_failures[0]: the timeline expects no rate; allowed: move-done, isr",
        ),
        (
            "drop: [lots]",
            "drop: [lost]",
            "fixed.drop[0]: there is no entry lots; allowed: move, throttle, lost or alarm",
        ),
        ("name: alarm\n      at", "name: clean-up\n      at", "fixed.add[0].name: alarm is the name of another entry"),
        ("    mve: {", "    move: {at", "fixed.replace.mve: there is no entry mve"),
        ("{hury: 1s}", "{hurry: 1s}", "fixed.parameters.hury: there is no parameter hury"),
        ("optional: yes", "optional: true", "timeline[3].optional: yes; allowed: true or false"),
        ("topology: three-broker\n", "topology: three-brokers\n", "3:11: topology: no topology 'three-broker'"),
        ("lasts: \n", "lasts: 60s\n", "4:7: lasts: nothing is given"),
        (
            "sumary: Too late.",
            "summary: Too late.",
            "broken.sumary: unknown field sumary; allowed: summary, expected_failures, kafka or defects; did you",
        ),
        ("faulty:\n", "broken:\n", "unknown field faulty; allowed: name, summary, "),
    ],
)
def test_a_mistake_is_reported_with_its_place(wrong, right, message):
    if right.endswith("{at"):
        wrong += "at"
    assert right in SMALL
    found = mistakes(SMALL.replace(right, wrong, 1))
    assert any(message in line for line in found), found
    assert all(line.startswith("x.yaml:") for line in found)
    assert len(found) == (2 if wrong == "faulty:\n" else 1), found


def test_all_mistakes_of_types_are_reported_at_once_in_order():
    text = SMALL.replace("size: 4MB", "size: 4").replace("at: 2s", "at: 2").replace("isr: {topic: o", "irs: {topic: o")
    found = mistakes(text)
    assert [line.split(":")[1] for line in found] == ["10", "15", "31"]


def test_all_broken_rules_are_reported_at_once_in_order():
    text = SMALL.replace("replicas: [b1, b2]", "replicas: [b1, b7]").replace("hosts: [b1, b3]", "hosts: [b8]")
    assert [line.split(":")[1] for line in mistakes(text)] == ["10", "16"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{at: {time: 1s, isr: {below: 1}}, do: {heal: {}}}", "isr and time in one mapping; allowed: a trigger with"),
        ("{at: {}, do: {heal: {}}}", "an empty mapping; allowed: a trigger with one of the keys"),
        ("{at: 1s, do: {heal: {}, cancel: {}}}", "cancel and heal in one mapping; allowed: an action with one"),
        ("{at: 1s}", "nothing to do and nothing to expect; allowed: do, expect, or both"),
        ("{do: {heal: {}}}", "it does not say when; allowed: at"),
        ("{at: 1s, within: 3s, do: {heal: {}}}", "an entry with a fixed time needs no deadline"),
        ("{at: 1s, optional: true, do: {heal: {}}}", "a time always comes"),
        ("{at: {move_progress: {share: 10%, topic: clicks}}, do: {heal: {}}}", "nothing in the timeline requests that"),
        ("{at: 1s, do: {set_throttle: {rate: 0B/s}}}", "a throttle of nothing"),
        ("{at: 1s, do: {heal: {fault: broker_kil}}}", "broker_kil is not a fault; allowed: "),
        ("{at: 1s, do: restart}", "restart instead of a mapping; allowed: move, "),
        (
            "{at: 1s, expect: {rate: {topic: orders, host: b3, direction: transmit, max: 1MB/s, window: 11s}}}",
            "counted where its logs grow",
        ),
        (
            "{at: 1s, expect: {rate: {host: b3, direction: recieve, max: 1MB/s, window: 11s}}}",
            "recieve; allowed: transmit or receive; did you mean receive?",
        ),
        (
            "{at: 1s, expect: {uplink_bound: {rack: r1, direction: receive, expected: false}}}",
            "there is no rack with an uplink rate of its own r1; allowed: none",
        ),
        ("{name: move, at: 1s, do: {heal: {}}}", "move is the name of another entry; allowed: each once"),
    ],
)
def test_an_entry_that_makes_no_sense(entry, message):
    found = mistakes(SMALL.replace("timeline:\n", f"timeline:\n  - {entry}\n"))
    assert any(message in line for line in found), found


@pytest.mark.parametrize(
    "text", ["", "[]", "name: x", "a: [", "- 1", "timeline: 3", "state: {topics: 1}\ntimeline: {}"]
)
def test_a_file_that_is_no_incident_is_refused_whole(text):
    assert all("a topology is" not in line and "a topology needs" not in line for line in mistakes(text))


def test_a_missing_file_and_a_misspelt_name(tmp_path):
    with pytest.raises(FormError, match="there is no such file"):
        load(tmp_path / "x.yaml")
    with pytest.raises(UsageError, match=r"no incident 'move-befor-quota'.*did you mean move-before-quota\?"):
        find("move-befor-quota")


@pytest.mark.parametrize("name", ready_incidents())
def test_ready_incidents_load_and_can_be_described(name):
    file = find(name)
    assert file.broken.name == name
    assert file.broken.expected_failures
    assert "the broken variant (seed 7)" in describe(file.broken, 7)
    assert "the expected outcome: every expectation is met" in describe(file.fixed, 7)
    path = Path("topologies/incidents") / f"{name}.yaml"
    first = (Path(__file__).parents[2] / path).read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=incident.schema.json"


ACTION_FORMS = {
    "converge: {within: 40s}": "converge within 40s",
    "move: {topics: [orders], hosts: [b1]}": "move orders to b1",
    "move: {topics: [orders, clicks], hosts: [b1, b3], throttle: 5MB/s}": (
        "move orders, clicks to b1, b3 throttled at 5MB/s"
    ),
    "set_throttle: {rate: 5MB/s}": "set throttle 5MB/s",
    "set_throttle: {rate: 5MB/s, topics: [orders, clicks]}": "set throttle 5MB/s for orders, clicks",
    "change_throttle: {rate: 20MB/s}": "change throttle to 20MB/s",
    "remove_throttle: {}": "remove throttle",
    "restart: {host: b2}": "restart b2",
    "elect_preferred: {}": "elect preferred leaders",
    "elect_preferred: {topics: [orders]}": "elect preferred leaders of orders",
    "cancel: {}": "cancel moves",
    "cancel: {topics: [orders, clicks]}": "cancel moves of orders, clicks",
    "heal: {}": "heal",
    "heal: {fault: broker_kill}": "heal broker_kill",
    "broker_kill: {host: b2}": "broker-kill host=b2",
    "nic_rate: {host: b2, rate: 10mbit}": "nic-rate host=b2 rate=10mbit",
}
EXPECTATION_FORMS = {
    "move_done: {within: 40s}": "move done within 40 s",
    "move_done: {topic: orders, within: 50s}": "move of orders done within 50 s",
    "quota_before_move: {}": "throttle in force before the move",
    "throttle_removed: {}": "throttle removed",
    "isr: {min: 1}": "isr never below 1",
    "isr: {topic: orders, min: 2}": "isr never below 2 of orders",
    "fully_replicated: {}": "fully replicated at the end",
    "rate: {host: b1, direction: transmit, max: 12MB/s, window: 11s}": "rate on b1 transmit <= 12 MB/s over 11 s",
    "rate: {topic: orders, host: b3, direction: receive, max: 6.5MB/s, window: 5s}": (
        "rate of orders on b3 receive <= 6.5 MB/s over 5 s"
    ),
    "nic_bound: {host: b1, direction: receive}": "nic-bound b1 receive",
    "nic_bound: {host: b1, direction: transmit, expected: false}": "not nic-bound b1 transmit",
    "uplink_bound: {rack: right, direction: transmit}": "uplink-bound right transmit",
    "uplink_bound: {rack: right, direction: receive, expected: false}": "not uplink-bound right receive",
    "records_intact: {}": "no records lost",
    "moves_ended: {}": "every reassignment ended as requested",
    "isr_explained: {}": "in-sync replicas never under min.insync.replicas without a cause",
    "reassignment_completed: {within: 10s, topic: orders}": "reassignment of orders completed within 10 s",
    "min_isr_enforced: {}": "no record accepted under min.insync.replicas",
    "partitions_sound: {}": "ISR and leader among the replicas, always",
    "in_sync_at_end: {}": "every replica in sync at the end",
    "throttle_bound: {response: 1MiB, fetchers: 2}": "throttled bytes within the bound of any 11 s",
    "metadata_replayed: {}": "the metadata log replays to what brokers describe",
    "logs_removed: {}": "logs of removed replicas deleted",
    "preferred_leaders: {}": "preferred leaders",
    "all_acknowledged: {}": "every record acknowledged",
    "produce_latency: {percentile: 99%, max: 500ms}": "produce latency of 99% <= 500 ms",
}


@pytest.mark.parametrize(("text", "shown"), ACTION_FORMS.items())
def test_actions(text, shown):
    file = loads(SMALL.replace("  - name: throttle\n", f"  - {{at: 1s, do: {{{text}}}}}\n  - name: throttle\n"))
    assert str(file.broken.entries[1].actions[0]) == shown


@pytest.mark.parametrize(("text", "shown"), EXPECTATION_FORMS.items())
def test_expectations(text, shown):
    changed = SMALL.replace("  - name: throttle\n", f"  - expect: {{{text}}}\n  - name: throttle\n")
    if text.startswith("uplink"):
        changed = changed.replace("topology: three-brokers", "topology: two-racks-narrow-uplink")
    assert str(loads(changed).broken.entries[1].expectations[0]) == shown


def test_every_kind_of_action_and_expectation_is_tried_here():
    tried = {next(iter(yaml.safe_load(text))) for text in ACTION_FORMS}
    assert tried >= {key for key, kind in ACTIONS.items() if not issubclass(kind, InjectFault)}
    assert {next(iter(yaml.safe_load(text))) for text in EXPECTATION_FORMS} == set(EXPECTATIONS)


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
    found = [problem.message for problem in refused.value.problems]
    lacking = [line for line in found if "is not possible with the software of shared, which lacks" in line]
    assert {line.split(" is not possible")[0] for line in lacking} == {
        "move orders to b1, b3",
        "move orders to b1 throttled at 5MB/s",
        "set throttle 5MB/s for orders",
        "change throttle to 50MB/s",
    }


def test_several_topics_may_have_a_load_each_once():
    two = SMALL.replace(
        "load: {produce: 1MB/s, to: clicks}", "load: [{produce: 1MB/s, to: clicks}, {produce: 20MB/s, to: more}]"
    ).replace("  topics:\n", "  topics:\n    more: {partitions: 1, replicas: [b3]}\n")
    assert [load.to for load in loads(two).broken.loads] == ["clicks", "more"]
    found = mistakes(two.replace("to: more", "to: clicks"))
    assert any("load[1].to: clicks has a load already; allowed: each topic once" in line for line in found), found
    found = mistakes(two.replace("20MB/s", "900MB/s"))
    assert any("more than 50000 records a second" in line for line in found), found


def test_a_variant_may_have_a_release_and_defects_of_its_own():
    text = SMALL.replace("  summary: Too late.\n", "  summary: Too late.\n  kafka: 4.2.1\n  defects: [late-isr@b2]\n")
    file = loads(text)
    assert {host.kafka_version for host in file.broken.topology.brokers} == {"4.2.1"}
    assert (file.broken.defects, file.fixed.defects) == (("late-isr@b2",), ())
    assert (small().broken.defects, small().fixed.defects) == (None, None)
    assert any(
        "broken.defects" in line and "no defect" in line for line in mistakes(text.replace("late-isr", "lte-isr"))
    )


@pytest.mark.parametrize("refused", [True, False], ids=["filled", "empty"])
def test_a_compacted_topic_takes_no_records_without_keys(refused):
    topic = "size: 4MB, replicas: [b1, b2]"
    compacted = "replicas: [b1, b2], configs: {cleanup.policy: compact}"
    text = SMALL.replace(topic, f"size: 4MB, {compacted}" if refused else topic)
    if not refused:
        text = text.replace("  topics:\n", f"  topics:\n    empty: {{partitions: 1, {compacted}}}\n")
        loads(text, "small.yaml")
        return
    with pytest.raises(FormError, match=r"small.yaml:\d+:\d+: .*cleanup.policy.: a compacted topic refuses"):
        loads(text, "small.yaml")
