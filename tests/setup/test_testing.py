"""`./run test` runs all tests in two parts, and what was asked for in one."""

import os
import sys

from testbed.setup import main


def stand_in(tmp_path, script):
    """A `pytest` of this test's own, first on PATH, that notes its arguments."""
    program = tmp_path / "bin" / "pytest"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{script}\n')
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


def asked(tmp_path):
    return (tmp_path / "asked").read_text().splitlines()


def test_every_test_is_in_exactly_one_part():
    marks = [command[command.index("-m") + 1] for command in main.test_commands([])]
    for alone in (False, True):
        assert sum(eval(mark, {}, {"alone": alone, "nightly": False}) for mark in marks) == 1


def test_what_is_asked_for_goes_to_pytest_as_it_is(tmp_path):
    variables = stand_in(tmp_path, "exit 5")
    assert main.run_tests(["-m", "nightly", "tests/x.py"], tmp_path, variables) == 5
    assert asked(tmp_path) == ["-m nightly tests/x.py"]


def test_a_part_that_fails_hides_no_other(tmp_path):
    variables = stand_in(tmp_path, 'case "$2" in "not "*) exit 1;; esac')
    assert main.run_tests([], tmp_path, variables) == 1
    assert len(asked(tmp_path)) == 2


def test_an_interrupt_is_the_end_of_it(tmp_path):
    variables = stand_in(tmp_path, "exit 2")
    assert main.run_tests([], tmp_path, variables) == 2
    assert len(asked(tmp_path)) == 1


def test_all_parts_pass(tmp_path):
    assert main.run_tests([], tmp_path, stand_in(tmp_path, f"exec {sys.executable} -c pass")) == 0
