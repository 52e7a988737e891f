"""The JVM of a host's Kafka: inherited field by field, part of the digest, applied to its command line."""

from dataclasses import replace

import pytest

from testbed.provision.plan_text import describe
from testbed.software.jvm import JVM_FLAGS, with_jvm
from testbed.topology import Jvm, TopologyError, load_document, loads
from testbed.topology.jvm import OWN

TEXT = """
name: heaps
kafka: {version: 4.3.1, jvm: {heap: 1GB, flags: [-Dall=1]}}
defaults: {nic: {rate: 400mbit}}
roles: {broker: {kafka: {jvm: {gc: g1}}}}
hosts:
  b1: {role: both}
  b2: {role: broker}
  b3: {role: broker, kafka: {jvm: {heap: 2GiB, flags: [-XX:MaxGCPauseMillis=20]}}}
  c1: {role: client}
"""
BARE = """
name: heaps
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts: {b1: {role: both}, b2: {role: broker}, b3: {role: broker}, c1: {role: client}}
"""


def test_the_nearest_place_counts_for_each_field():
    assert [host.jvm for host in loads(TEXT).hosts] == [
        Jvm(10**9, None, ("-Dall=1",)),
        Jvm(10**9, "g1", ("-Dall=1",)),
        Jvm(2 << 30, "g1", ("-XX:MaxGCPauseMillis=20",)),
        OWN,
    ]
    assert "    jvm: heap 2GiB, gc g1, -XX:MaxGCPauseMillis=20" in describe(loads(TEXT)).splitlines()


@pytest.mark.parametrize("words", ["-Xms1G -Xmx1G", "-Xmx1g", "-Xmx1024m -Xms1G", "-Xmx1073741824"])
def test_a_heap_may_have_the_words_of_kafka_heap_opts(words):
    """They were refused as a number without a unit. To a JVM `1G` is 1 GiB."""
    topology = loads(TEXT.replace("heap: 2GiB", f"heap: {words}"))
    assert topology.host("b3").jvm.heap_bytes == 1 << 30
    assert topology == loads(TEXT.replace("heap: 2GiB", "heap: 1GiB"))


def test_it_is_part_of_the_digest_and_absent_where_it_is_not_declared():
    topology, bare = loads(TEXT), loads(BARE)
    assert load_document(topology.to_document()) == topology
    assert all("jvm" not in host.get("kafka", {}) for host in bare.to_document()["hosts"].values())
    assert bare.digest() != topology.digest()


def test_flags_that_set_no_size_of_the_heap_are_allowed():
    """Those of its free part were refused, with the advice to set the heap instead."""
    flags = ("-XX:MinHeapFreeRatio=20", "-XX:MaxHeapFreeRatio=40")
    topology = loads(TEXT.replace("[-XX:MaxGCPauseMillis=20]", f"[{', '.join(flags)}]"))
    assert topology.host("b3").jvm.flags == flags


@pytest.mark.parametrize(
    ("wrong", "field", "why"),
    [
        ("heap: 1MB", "heap", "allowed: 128MiB to 1024GiB, such as 1GB"),
        ("heap: -Xmx64m", "heap", "allowed: 128MiB to 1024GiB, such as 1GB"),
        ("heap: -Xms256m -Xmx1G", "heap", "allowed: a size such as 1GiB, or -Xms and -Xmx with the same size"),
        ("heap: -Xms1G", "heap", "allowed: a size such as 1GiB, or -Xms and -Xmx with the same size"),
        ("heap: -Xmx1GiB", "heap", "allowed: a size such as 1GiB, or -Xms and -Xmx with the same size"),
        ("heap: '-Xmx1G -XX:+UseG1GC'", "heap", "allowed: a size such as 1GiB, or -Xms and -Xmx with the same size"),
        ("gc: cms", "gc", "allowed: serial, parallel, g1 or zgc"),
        ("flags: [-Xmx1g]", "flags", "-Xmx1g is not yours to set; instead: heap"),
        ("flags: ['-XX:MaxRAMPercentage=70']", "flags", "instead: heap"),
        ("flags: ['-XX:InitialHeapSize=1g']", "flags", "instead: heap"),
        ("flags: ['-XX:+UseG1GC']", "flags", "instead: gc"),
        ("flags: ['-javaagent:/tmp/a.jar']", "flags", "is no flag of a JVM that may be set"),
        ("flags: ['-XX:Flags=/tmp/f']", "flags", "the testbed sets it itself"),
        ("flags: ['-XX:OnError=reboot']", "flags", "the testbed sets it itself"),
        ("flags: ['-Da=1 -jar x']", "flags", "is no flag of a JVM that may be set"),
    ],
)
def test_what_is_no_jvm_is_refused_with_its_place(wrong, field, why):
    with pytest.raises(TopologyError) as refused:
        loads(TEXT.replace("heap: 2GiB, flags: [-XX:MaxGCPauseMillis=20]", wrong), "t.yaml")
    [problem] = refused.value.problems
    assert str(problem).startswith("t.yaml:9:")
    assert f"hosts.b3.kafka.jvm.{field}" in str(problem)
    assert why in str(problem)


def test_in_python_it_is_refused_alike():
    topology = loads(TEXT)
    with pytest.raises(TopologyError, match=r"hosts\.b1\.kafka\.jvm\.gc.*no collector"):
        replace(topology, hosts=(replace(topology.hosts[0], jvm=Jvm(gc="cms")), *topology.hosts[1:]))
    with pytest.raises(TopologyError, match=r"hosts\.c1\.kafka.*runs no Kafka"):
        replace(topology, hosts=(*topology.hosts[:-1], replace(topology.hosts[-1], jvm=Jvm(gc="g1"))))


def test_the_command_line_has_one_heap_and_one_collector():
    command = ("sh", "-c", "x", "java", *JVM_FLAGS, "-cp", "a.jar", "kafka.Kafka", "f")
    assert with_jvm(command, None, None, ()) == command
    own = with_jvm(command, 1 << 30, "g1", ("-Dall=1",))
    assert own[:7] == ("sh", "-c", "x", "java", "-Xms1073741824", "-Xmx1073741824", "-XX:+UseG1GC")
    assert [each for each in own if each.startswith(("-Xm", "-XX:+Use"))] == list(own[4:7])
    assert own[-5:] == ("-Dall=1", "-cp", "a.jar", "kafka.Kafka", "f")


def test_a_flag_of_the_topology_counts_where_the_testbed_has_another_value():
    """Of two values of one flag the JVM takes the last."""
    command = ("java", *JVM_FLAGS, "-cp", "a.jar", "kafka.Kafka", "f")
    found = with_jvm(command, None, None, ("-XX:TieredStopAtLevel=4",))
    levels = [each for each in found if each.startswith("-XX:TieredStopAtLevel=")]
    assert levels == ["-XX:TieredStopAtLevel=1", "-XX:TieredStopAtLevel=4"]
