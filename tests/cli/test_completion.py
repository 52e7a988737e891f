"""Completion of command lines, as the shells ask for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.cli.commands.completion import SHELLS

ROOT = Path(__file__).parents[2]


def completed(line):
    """Return the words for a line: argcomplete writes them to file descriptor 8."""
    read, write = os.pipe()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    code = f"exec {sys.executable} -m testbed.cli.main 8>&{write} 9>/dev/null"
    subprocess.run(["bash", "-c", code], env=environment, pass_fds=[write], check=False, timeout=60)
    os.close(write)
    with os.fdopen(read) as stream:
        return stream.read().split("\n")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("testbed wat", "watch"),
        ("testbed plan thr", "three-brokers"),
        ("testbed run kip73-st", "kip73-stuck"),
        ("testbed run kip73-two-node --prof", "--profile"),
        ("testbed experiments kip73-st", "kip73-stuck"),
        ("testbed replay move-b", "move-before-quota"),
        ("testbed reassign exe", "execute"),
    ],
)
def test_a_word_is_completed(line, word):
    assert completed(line) == [word]


@pytest.mark.parametrize("command", ["up", "plan", "replay"])
def test_a_file_is_completed_where_it_may_stand_for_a_name(command, tmp_path, monkeypatch):
    """bash would find it by itself; zsh and fish offer nothing but the program's words."""
    (tmp_path / "lab.yaml").touch()
    (tmp_path / "lab.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert completed(f"testbed {command} la") == ["lab.yaml"]


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_its_code(shell):
    words = (sys.executable, "-m", "testbed.cli.main", "completion", shell)
    code = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "testbed" in code and "_ARGCOMPLETE" in code
    program = shutil.which(shell)
    if program is not None:  # a syntax check by the shell itself, where it is installed; bash always is
        subprocess.run([program, "-n"], input=code, text=True, check=True)
