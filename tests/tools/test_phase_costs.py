"""Phases of a command: whose CPU is counted, from which reading to which, and by which lines a phase begins."""

import sys

import pytest

from tools.phase_costs import Costs, Process, measure, owners, phases, process

MINE, OTHERS = 100, 200


def test_the_command_is_its_process_and_all_below_it():
    known = [
        Process(MINE, 1, "python", 1.0, False),
        Process(101, MINE, "python", 1.0, False),
        Process(102, 101, "iperf3", 1.0, False),
        Process(OTHERS, 1, "bash", 1.0, False),
        Process(301, 300, "java", 1.0, True),
        Process(302, 300, "python3", 1.0, True),
    ]
    assert owners(known, MINE) == {MINE: "command", 101: "command", 102: "command", 301: "broker", 302: "agent"}


def test_a_process_has_its_parent_its_time_and_its_container():
    fields = ["S", "7", *["0"] * 9, "150", "50", *["0"] * 20]
    found = process(9, f"9 (a name) with) {' '.join(fields)}\n", "4:cpu,cpuacct:/docker/abc\n")
    assert (found.pid, found.parent, found.name, found.contained) == (9, 7, "a name) with", True)
    assert found.cpu_s == pytest.approx(2.0)
    assert not process(9, f"9 (x) {' '.join(fields)}", "0::/init.scope\n").contained


def test_what_was_used_before_does_not_count_and_what_ended_stays():
    costs = Costs(MINE)
    costs.read([Process(301, 1, "java", 50.0, True)])
    costs.read([Process(301, 1, "java", 52.0, True), Process(MINE, 1, "python", 0.5, False)])
    costs.read([Process(301, 1, "java", 53.0, True)])
    assert costs.so_far() == {"command": 0.5, "broker": 3.0, "agent": 0.0}


def test_a_phase_is_from_one_mark_to_the_next():
    zero = {"command": 0.0, "broker": 0.0, "agent": 0.0}
    found = phases(
        [(0.0, "start", zero), (2.0, "moving", {**zero, "broker": 1.0}), (5.0, "end", {**zero, "broker": 3.0})]
    )
    assert [(each.what, each.seconds, each.cpu_s["broker"]) for each in found] == [
        ("start", 2.0, 1.0),
        ("moving", 3.0, 2.0),
    ]


def test_a_command_is_measured_by_the_lines_that_it_prints():
    program = (
        "import sys, time\n"
        "print('   0.1 s  working', file=sys.stderr, flush=True)\n"
        "until = time.process_time() + 0.6\n"
        "while time.process_time() < until: pass\n"
        "print('no phase', file=sys.stderr)\n"
        "print('   0.7 s  done', file=sys.stderr, flush=True)\n"
        "sys.exit(3)\n"
    )
    code, found = measure([sys.executable, "-c", program])
    assert code == 3 and [each.what for each in found] == ["start", "working", "done"]
    assert 0.5 <= found[1].cpu_s["command"] <= 0.8
