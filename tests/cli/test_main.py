import signal
import subprocess
import sys

import pytest

from results.contract.store import StoreError
from testbed import __version__
from testbed.cli.command import commands
from testbed.cli.commands import plan
from testbed.cli.main import main
from testbed.errors import TestbedError, reason
from testbed.paths import state_dir
from testbed.provision import containers, resources
from testbed.signals import TerminationGuard


def test_every_command_is_listed_with_what_it_does(capsys):
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    for command in commands():
        assert command.help and f"  {command.name} " in told and f"  {command.help}\n" in told
        assert callable(command.module.configure) and callable(command.module.run)


def test_python_runs_the_package_as_the_command():
    done = subprocess.run([sys.executable, "-m", "testbed", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{__version__}\n"


def test_an_unknown_command_is_answered_with_the_nearest(capsys):
    assert main(["upp"]) == 64
    assert "did you mean `testbed up`?" in capsys.readouterr().err


def test_output_that_nothing_reads_to_its_end_is_no_pass(monkeypatch):
    def closed(_args):
        raise BrokenPipeError

    monkeypatch.setattr(plan, "run", closed)
    assert main(["plan", "three-brokers"]) == 141


def test_sigterm_has_the_exit_code_of_ctrl_c_also_while_data_moves(monkeypatch, capsys):
    """A move turns SIGTERM into an exception of its own, with the exit code of a shell: 143, and no message."""

    def terminated(_args):
        with TerminationGuard():
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(plan, "run", terminated)
    try:
        assert main(["plan", "three-brokers"]) == 130
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err == "testbed plan: interrupted\n"


def test_a_damaged_store_is_named_without_a_traceback(monkeypatch, capsys):
    """`compare --resume` read a damaged run."""

    def damaged(_args):
        raise StoreError("run 1: samples.parquet is missing")

    monkeypatch.setattr(plan, "run", damaged)
    assert main(["plan", "three-brokers"]) == 70
    assert capsys.readouterr().err == "testbed plan: run 1: samples.parquet is missing\n"


def test_a_file_of_another_user_is_named_without_a_traceback(monkeypatch, capsys):
    """A command with sudo had made the state folder."""

    def refused(_args):
        raise PermissionError(13, "Permission denied", "/home/ada/.local/state/testbed/testbeds/one/state.json")

    monkeypatch.setattr(plan, "run", refused)
    assert main(["plan", "three-brokers"]) == 70
    said = capsys.readouterr().err
    assert said.startswith(
        "testbed plan: Permission denied (/home/ada/.local/state/testbed/testbeds/one/state.json); it "
    )
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "words", [["up", "two-brokers"], ["run", "kip73-two-node"], ["replay", "dead-target", "--dry-run"]]
)
@pytest.mark.parametrize(
    ("kafka", "told"),
    [
        ("4.3", "'4.3' is no Kafka; allowed: a release (4.3.1), "),
        ("3.8.1", "Kafka 3.8.1 is too old; allowed: 3.9.0 or newer"),
        ("4.4.0-SNAPSHOT", "Kafka 4.4.0-SNAPSHOT: Maven gives this version to one build after the other"),
        ("/nowhere/kafka", "there is no Kafka at /nowhere/kafka: no such file or folder"),
    ],
)
def test_a_text_that_names_no_kafka_is_wrong_usage(words, kafka, told, monkeypatch, tmp_path, capsys):
    """Wrong usage has 64; 70 says that a command could not be done."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert main([*words, "--kafka", kafka]) == 64
    assert told in capsys.readouterr().err
    assert not (state_dir() / "testbeds").exists()


def test_no_command_is_wrong_usage():
    assert main([]) == 64


@pytest.mark.parametrize("words", [["up"], ["down", "x", "--al"], ["run", "x", "--profile"], ["results", "burn"]])
def test_a_wrong_option_is_wrong_usage(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 64
    assert "usage: testbed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "kip73-twonode"], "did you mean kip73-two-node?"),
        (["run", "kip73-two-node", "--set", "rate=10"], "--set rate=10"),
        (["run", "kip73-two-node", "--profile", "fast"], "there are smoke, ci, release"),
        (["run", "kip73-two-node", "--on", "x", "--kafka", "4.0.0"], "that is up: leave --topology and --kafka out"),
        (["selftest", "--resume", "x", "--defect", "late-isr"], "or begin a new self-test without --resume"),
        (["plan", "tow-brokers"], "did you mean two-brokers?"),
        (["down"], "the name of one testbed, or --all"),
        (["exec", "b1", "ls"], "put -- before the command"),
        (["exec", "b1", "--"], "no command after --"),
        (["down", "../etc"], "lower-case"),
        (["suite", "kip73", "--out", "/dev/null/x"], "/dev/null is no folder that can be written to"),
        (["kafkatest", "/", "--out", "/dev/null/x"], "/dev/null is no folder that can be written to"),
        (["search", "--out", "/dev/null/x"], "/dev/null is no folder that can be written to"),
        (["capture", "x", "--from", "/", "--out", "/dev/null/x"], "/dev/null is no folder that can be written to"),
    ],
)
def test_refusals_say_what_is_allowed(words, told, capsys):
    assert main(words) == 64
    assert told in capsys.readouterr().err


def test_down_all_removes_the_others_when_one_cannot_be_removed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(containers, "Engine", lambda: None)
    monkeypatch.setattr(resources, "known_here", lambda _engine: ["far", "near"])

    def remove(_engine, name):
        if name == "far":
            raise TestbedError("far is not wholly removed")
        return ["container b1"]

    monkeypatch.setattr(resources, "remove", remove)
    assert main(["down", "--all"]) == 70
    told = capsys.readouterr()
    assert told.out == "near: removed container b1\n"
    assert "far is not wholly removed" in told.err


def test_plan_needs_neither_root_nor_engine(capsys, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["plan", "three-brokers"]) == 0
    told = capsys.readouterr().out
    assert "tc class replace dev data0" in told
    assert "controller.quorum.voters=1@198.19.0.11:9094" in told


def test_without_an_engine_the_way_out_is_told(capsys, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    assert main(["ls"]) == 70
    assert "testbed doctor --fix" in capsys.readouterr().err


def test_without_a_name_the_only_testbed_is_meant(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["logs", "b1"]) == 64
    assert "no testbed is up; `testbed up three-brokers` brings one up" in capsys.readouterr().err
    for name in ("mine", "other"):
        (state_dir() / "testbeds" / name).mkdir(parents=True)
    assert main(["logs", "b1"]) == 64
    assert "several testbeds are up: mine, other; name one" in capsys.readouterr().err


def test_there_is_no_testbed_of_that_name(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["status", "nope"]) == 70
    assert "there is no testbed nope" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        (
            "from testbed.cli.command import commands; list(commands())",
            {"testbed.setup", "testbed.topology", "pydantic"},
        ),
        ("import testbed.experiments.half_runs", {"results.contract.store", "pyarrow", "numpy", "jinja2"}),
    ],
    ids=["the list of commands", "what gc asks of unfinished runs"],
)
def test_what_every_start_waits_for_imports_little(code, unwanted):
    told = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert unwanted & set(told.stdout.split()) == set()


@pytest.mark.parametrize(
    ("error", "text"), [(KeyError("schema"), "there is no field 'schema'"), (ValueError("schema 9"), "schema 9")]
)
def test_the_reason_of_a_wrong_file_has_no_name_of_an_exception(error, text):
    assert reason(error) == text
