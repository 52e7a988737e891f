"""The prompt of `testbed shell`, on brokers: as a script, and in a terminal."""

import re
import subprocess
import sys

import pytest

from testbed.paths import state_dir
from tests.containers.conftest import ROOT
from tests.containers.test_shell import in_terminal

pytestmark = pytest.mark.containers


def prompt(*name):
    return [sys.executable, "-m", "testbed.cli.main", "shell", *name]


def script(three, text):
    return subprocess.run(
        prompt(three.name), cwd=ROOT, input=text, capture_output=True, text=True, timeout=120, check=False
    )


def rates(three, host):
    return three.hosts[host].run("tc class show dev data0").stdout


def test_a_script_makes_fills_moves_and_deletes_a_topic(three):
    done = script(
        three,
        """
        # one broker leads all
        create prompted partitions 4 replicas 1 on b1
        produce prompted 2000 × 10KiB
        move prompted from 1 to b2 throttle 1MB/s
        throttle 20MB/s
        moves
        wait
        topics prompted
        """,
    )
    assert done.returncode == 0, done.stderr
    try:
        assert "prompted: 2000 records, 20.48MB, acknowledged" in done.stdout
        assert "throttle 20MB/s, in force on brokers 1, 2, 3" in done.stdout
        assert "the move of prompted is done after" in done.stdout
        with three.admin() as admin:
            states = admin.partitions(["prompted"])
            assert [state.replicas for state in states.values()] == [(2,)] * 4
            offsets = admin.end_offsets(states)
            assert sum(offsets.values()) == 2000
            assert admin.topic_configs("prompted") == {}
            assert admin.broker_configs(1).broker == {}
    finally:
        assert script(three, "delete prompted").returncode == 0


def test_a_rate_is_set_replaced_and_back_at_the_declared_one(three):
    declared = rates(three, "b2")
    done = script(three, "broker-2 rate 50mbit\nlinks\nb2 rate 80mbit\n")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^b2 .* 50mbit$", done.stdout, re.MULTILINE)
    assert "rate 80Mbit" in rates(three, "b2")
    # What is left is said, with the way to end it.
    assert re.search(r"not healed: fault \d+, nic-rate host=b2 rate=80mbit, by hand; `heal \d+`", done.stderr)
    healed = script(three, "b2 rate declared\nfaults\n")
    assert healed.returncode == 0 and "no faults" in healed.stdout and healed.stderr == ""
    assert rates(three, "b2") == declared


def test_a_script_ends_at_its_first_failure_with_its_exit_code(three):
    wrong = script(three, "b1 run echo before\nhsots\nb1 run echo never\n")
    assert (wrong.returncode, wrong.stdout) == (64, "before\n")
    assert wrong.stderr.startswith("line 2: no command or host 'hsots'; did you mean hosts?")
    failed = script(three, "b3 run exit 7\nb1 run echo never\n")
    assert (failed.returncode, failed.stdout) == (7, "")
    left = script(three, "exit\nhsots\n")
    assert left.returncode == 0


def test_a_move_goes_on_after_the_user_leaves_and_the_next_session_ends_it(three):
    begun = script(
        three,
        """
        create staying partitions 2 replicas 1 on 1
        produce staying 1000 × 10KiB
        move staying to 3 throttle 100kB/s
        exit
        """,
    )
    assert begun.returncode == 0, begun.stderr
    try:
        assert "not ended: the move of staying; it goes on as its throttle permits. `resume` here" in begun.stderr
        with three.admin() as admin:
            assert len(admin.reassignments(["staying"])) == 2
        done = script(three, "resume\nthrottle 50MB/s\n")  # at its end a script waits for its move
        assert done.returncode == 0, done.stderr
        assert "the move of staying is done after" in done.stderr
        with three.admin() as admin:
            assert [state.replicas for state in admin.partitions(["staying"]).values()] == [(3,)] * 2
            assert admin.topic_configs("staying") == {}
    finally:
        assert script(three, "delete staying").returncode == 0


def test_the_prompt_completes_interrupts_and_keeps_its_history(three):
    with in_terminal(prompt(three.name)) as (terminal, process):
        terminal.wait_for(f"{three.name}> ")
        terminal.press("broker-2 ru\techo $(hostname)-seen\r")
        terminal.wait_for("b2-seen\r\n")
        terminal.wait_for(f"{three.name}> ")
        terminal.press("b1 run echo begun >&2; sleep 60\r")
        terminal.wait_for("sleep 60\r\n")
        terminal.press("\x03")
        terminal.wait_for(r"\^C")
        terminal.wait_for(f"{three.name}> ")
        terminal.press("hsots\r")
        terminal.wait_for("did you mean hosts")
        terminal.wait_for(f"{three.name}> ")
        terminal.press("\x04")
        assert process.wait(timeout=15) == 0
    history = state_dir() / "shell-history"
    assert "broker-2 run echo $(hostname)-seen" in history.read_text()
    with in_terminal(prompt(three.name)) as (terminal, process):
        terminal.wait_for(f"{three.name}> ")
        terminal.press("\x1b[A")  # the line before
        terminal.wait_for("hsots")
        process.terminate()
        assert process.wait(timeout=15) == 130
