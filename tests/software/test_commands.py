import os
from pathlib import Path

import pytest

from testbed.software import commands
from testbed.software.commands import CommandError, find_java, major_version, run_logged, tail


def test_output_and_command_are_in_the_log(tmp_path: Path) -> None:
    run_logged(["sh", "-c", "echo out; echo err >&2"], tmp_path / "logs" / "log")
    assert (tmp_path / "logs" / "log").read_text() == "$ sh -c echo out; echo err >&2\nout\nerr\n"


def test_a_failure_tells_the_last_lines_and_where_the_rest_is(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(CommandError) as caught:
        run_logged(["sh", "-c", "seq 99; printf '\\033[31m100\\033[0m\\n'; exit 3"], log)
    message = str(caught.value)
    assert "exit code 3" in message
    assert "    89\n" in message
    assert "    100\n" in message
    assert "    88\n" not in message
    assert message.endswith(f"whole log: {log}")


def test_the_output_of_earlier_programs_is_not_part_of_the_message(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run_logged(["echo", "from before"], log)
    with pytest.raises(CommandError) as caught:
        run_logged(["sh", "-c", "echo now; exit 1"], log)
    assert "from before" not in str(caught.value)
    assert caught.value.output.endswith("\nnow\n")


def test_a_setpriv_that_counts_as_missing_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BusyBox's has no `--pdeathsig`: with it no program of set-up could run."""
    setpriv = tmp_path / "setpriv"
    setpriv.write_text("#!/bin/sh\nexit 1\n")
    setpriv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(commands, "which", lambda _program: None)
    run_logged(["true"], tmp_path / "log")


def test_a_program_that_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no-such-program is not installed"):
        run_logged(["no-such-program"], tmp_path / "log")


def test_a_program_that_does_not_end_in_time(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"not done after 0\.1 s"):
        run_logged(["sleep", "20"], tmp_path / "log", timeout_s=0.1)


def test_standard_input_is_given_or_empty(tmp_path: Path) -> None:
    run_logged(["cat"], tmp_path / "given", stdin="hello\n")
    run_logged(["cat"], tmp_path / "empty")
    assert tail(tmp_path / "given") == "    $ cat\n    hello"
    assert tail(tmp_path / "empty") == "    $ cat"


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('JAVA_VERSION="17.0.21"\nOS_ARCH="x86_64"', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("no java at all", None),
    ],
)
def test_the_major_version(text: str, major: int | None) -> None:
    assert major_version(text) == major


def install(folder: Path, version: str) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\n")
    (folder / "bin" / "java").chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')


def test_one_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "jvm" / "old", "11.0.2")
    install(tmp_path / "jvm" / "recent", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jvm" / "old"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(commands, "JVM_FOLDER", tmp_path / "jvm")
    found = find_java()
    assert found is not None
    assert (found.home, found.major) == (tmp_path / "jvm" / "recent", 21)
    (tmp_path / "jvm" / "recent").rename(tmp_path / "elsewhere")
    assert find_java() is None
