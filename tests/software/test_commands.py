from pathlib import Path

import pytest

from testbed.software.commands import CommandError, run_logged, tail


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
