"""The agent's option, its notes, its check of a release, and the agreement of its jar with the catalogue."""

import subprocess

import pytest

from testbed.defects import agent, defects
from testbed.defects.agent import DefectNote, agent_flag, agent_jar, not_loaded, parse_notes
from testbed.errors import SoftwareError, TestbedError
from testbed.software.commands import find_java
from testbed.software.jvm import with_flag


def test_the_option_of_the_jvm():
    flag = agent_flag(["leader-throttle-leak,share=0.25", "late-isr"])
    assert flag == "-javaagent:/opt/testbed/defects/testbed-defects.jar=leader-throttle-leak,share=0.25;late-isr"
    assert with_flag(("sh", "-c", "x", "with-credentials", "java", "-Xmx1g", "kafka.Kafka"), flag) == (
        *("sh", "-c", "x", "with-credentials", "java", flag, "-Xmx1g", "kafka.Kafka"),
    )


def test_the_notes_of_a_broker():
    notes = parse_notes("late-isr loaded 1763900000123\nlate-isr acted 1763900001000 t-0 on 2 kept out\n")
    assert notes == (
        DefectNote("late-isr", "loaded", 1763900000123),
        DefectNote("late-isr", "acted", 1763900001000, "t-0 on 2 kept out"),
    )
    assert not_loaded(["late-isr,seconds=3"], notes) == []
    assert not_loaded(["late-isr", "leader-throttle-leak,share=1"], notes) == ["leader-throttle-leak"]
    assert not_loaded(["late-isr"], notes[1:]) == ["late-isr"]


@pytest.mark.parametrize("line", ["late-isr", "late-isr began 17", "late-isr loaded soon"])
def test_a_line_that_is_no_note(line):
    with pytest.raises(TestbedError, match="not a note"):
        parse_notes(line)


def test_a_release_without_the_method_is_refused_by_name(monkeypatch):
    said = "ok late-isr\nmissing leader-throttle-leak kafka.server.ReplicationQuotaManager.record(long)\n"
    done = subprocess.CompletedProcess([], 1, said, "")
    monkeypatch.setattr(agent, "agent_jar", lambda: "x.jar")
    monkeypatch.setattr(agent.subprocess, "run", lambda *_args, **_named: done)
    release = type("R", (), {"version": "9.9.9", "libs": "/libs"})()
    refused = r"9\.9\.9 cannot have a defect, leader-throttle-leak: it has no kafka.*record\(long\)$"
    with pytest.raises(SoftwareError, match=refused):
        agent.require_methods(release, ["late-isr", "leader-throttle-leak"])
    done.stdout, done.stderr = "", "no defect x"
    with pytest.raises(SoftwareError, match="check of Kafka 9.9.9 failed: no defect x"):
        agent.require_methods(release, ["x"])


def test_the_jar_has_what_the_catalogue_says():
    """Names, kinds and parameters with their defaults; the jar is built when its sources are new (half a minute)."""
    java = find_java()
    command = [java.command, "-cp", agent_jar(), "testbed.defects.Check", "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    told = [
        ",".join([f"{each.kind} {each.name}", *(f"{p.name}={p.default}" for p in each.parameters)])
        for each in defects().values()
    ]
    assert sorted(told) == sorted(listed)
