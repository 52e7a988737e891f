"""`testbed bench`: the time of the testbed's own commands, each played in a process of its own and stored as a run.

A figure is one command. Figures with the same `group` belong together, such as `up` and `down` of one testbed: all are
played, in order, whichever of them is asked for. Each play is a run of the experiment `bench` in a store of its own, so
`testbed results judge` says when a command became slower, and at which commit.
"""

import os
import re
import resource
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory

from results.contract.manifest import Facts, Load, Machine, Manifest, TopologyRecord, new_run_id
from results.contract.schema import Event, Sample, events_table, samples_table
from results.contract.store import RunData, Store, StoreError
from results.contract.verdict import Verdict
from results.criteria import judge
from results.criteria.catalogue.command_time import CPU_SECONDS, ENDED, SECONDS
from results.criteria.catalogue.command_time import NAME as CRITERION
from results.criteria.quantities import DRIVER
from testbed.errors import TestbedError, UsageError
from testbed.experiments.record import commit, own_versions, timestamp
from testbed.paths import data_dir
from testbed.probes.machine import fingerprint
from testbed.software.engine import EngineSocket
from testbed.suggestions import existing

EXPERIMENT = "bench"
NAME = "{testbed}"
"""In a command: the name of a testbed of this invocation alone. `down` never removes another one."""
MOST_MESSAGE = 400
"""Characters of a failed command's last line that are stored."""
STORE = "{store}"
"""In a command: a store that is removed afterwards."""
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TimedCommand:
    """One command to time: `words` after `testbed`. `limit_s` is what the project promises; None: nothing."""

    name: str
    summary: str
    words: tuple[str, ...]
    group: str = ""
    limit_s: float | None = None

    @property
    def together(self) -> str:
        """Return the name of the figures that are played with this one."""
        return self.group or self.name


def _standing(topology: str, hosts: str) -> tuple[TimedCommand, ...]:
    """Return the figures of one testbed: it comes up, is looked at, and goes away."""
    return (
        TimedCommand(f"up-{topology}", f"{hosts}: up, shaped, serving", ("up", topology, "--name", NAME), topology),
        TimedCommand(f"status-{topology}", f"{hosts}: status, with every NIC read back", ("status", NAME), topology),
        TimedCommand(f"down-{topology}", f"{hosts}: removed", ("down", NAME), topology),
    )


FIGURES: tuple[TimedCommand, ...] = (
    TimedCommand("version", "the program starts", ("--version",)),
    TimedCommand("plan", "a topology is read and checked", ("plan", "three-brokers")),
    *_standing("two-brokers", "two brokers"),
    *_standing("ten-brokers", "ten brokers"),
    TimedCommand(
        "demo",
        "the demo's throttled move, from its start to its report",
        ("run", "kip73-two-node", "--set", "fetch=tuned", "--set", "rate=10MB/s", "--store", STORE),
        limit_s=95.0,
    ),
)


@dataclass(frozen=True, slots=True)
class CommandTiming:
    """One play of a figure: its time and CPU time in seconds, its exit code, and the last line of its errors."""

    figure: TimedCommand
    started: datetime
    seconds: float
    cpu_s: float
    exit_code: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class BenchRow:
    """The plays of one figure: times of those that ended well, and the reason of the last one that did not."""

    figure: TimedCommand
    verdicts: tuple[Verdict, ...]
    seconds: tuple[float, ...]
    cpu_s: tuple[float, ...]
    message: str


@dataclass(frozen=True, slots=True)
class BenchResult:
    """All figures, the location of the store, and the ids of its new runs."""

    rows: tuple[BenchRow, ...]
    store: str
    runs: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """Return 0 when every command ended well within its limit, else 1."""
        return 0 if all(verdict == "pass" for row in self.rows for verdict in row.verdicts) else 1


def default_store() -> str:
    """Return the location of the figures' runs without `--store`: apart from all other runs."""
    return str(data_dir() / "bench")


def chosen(names: Sequence[str]) -> tuple[TimedCommand, ...]:
    """Return the figures to play, with all that belong to the same groups. Raise `UsageError` for an unknown name."""
    figures = {figure.name: figure for figure in FIGURES}
    asked = [figures[existing("figure", name, figures)] for name in names]
    groups = {figure.together for figure in asked or FIGURES}
    return tuple(figure for figure in FIGURES if figure.together in groups)


def run_bench(names: Sequence[str], repeats: int, store: str | None, progress: Progress) -> BenchResult:
    """Play the figures `repeats` times, round by round, and return what each took.

    Raise `UsageError` for a wrong request, and `TestbedError` when the store cannot be written. A command that fails is
    a result. After a failure the group's remaining figures of that round are still played: `down` removes the testbed.
    """
    figures = chosen(names)
    if repeats < 1:
        raise UsageError(f"--repeats {repeats}: at least 1")
    try:
        opened = Store.open(store or default_store())
    except StoreError as error:
        raise TestbedError(str(error)) from error
    testbed = f"bench-{secrets.token_hex(3)}"
    plays: list[tuple[CommandTiming, Manifest]] = []
    for number in range(1, repeats + 1):
        for figure in figures:
            progress(f"round {number} of {repeats}: {figure.name}")
            try:
                timing = play(figure, testbed)
                plays.append((timing, record(timing, opened)))
            except BaseException:
                for other in figures:  # its testbed may be up, and no process owns it
                    if other.together == figure.together and other.words[0] == "down":
                        play(other, testbed)
                raise
    rows = tuple(_row(figure, [each for each in plays if each[0].figure == figure]) for figure in figures)
    return BenchResult(rows, opened.location, tuple(run.run_id for _timing, run in plays))


def play(figure: TimedCommand, testbed: str) -> CommandTiming:
    """Run a figure's command, on a testbed of this name, and return its time. An interruption ends it first."""
    with TemporaryDirectory(prefix="testbed-bench-") as folder:
        words = [{STORE: folder, NAME: testbed}.get(word, word) for word in figure.words]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started, begun = datetime.now(UTC), time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "testbed.cli.main", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            process_group=0,
        )
        try:
            _, errors = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGINT)
            process.communicate()
            raise
        seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return CommandTiming(
        figure, started, seconds, cpu_s, process.returncode, _message(errors) if process.returncode else ""
    )


def _message(errors: str) -> str:
    """Return the line with which the command gave its reason, else its last line."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    reasons = [line for line in lines if re.match(r"testbed\b[^:]*: ", line)]
    return (reasons[:1] or lines[-1:] or [""])[0][:MOST_MESSAGE]


def record(each: CommandTiming, store: Store) -> Manifest:
    """Judge a play, commit its run and return the run's manifest. Raise `TestbedError` when that fails."""
    ended = each.started + timedelta(seconds=each.seconds)
    at = int(ended.timestamp() * 1e6)
    detail = {
        "exit_code": each.exit_code,
        "seconds": round(each.seconds, 3),
        "limit_s": each.figure.limit_s,
        "message": each.message,
    }
    samples = []
    if not each.exit_code:
        samples = [Sample(at, DRIVER, SECONDS, each.seconds), Sample(at, DRIVER, CPU_SECONDS, each.cpu_s)]
    tables = samples_table(samples), events_table([Event(at, ENDED, each.figure.name, DRIVER, detail)])
    made = _manifest(each, ended)
    judgement = judge(made, *tables)
    made = replace(made, verdict=judgement.verdict)
    commit(store, RunData(made, *tables, list(judgement.criteria)))
    return made


def _manifest(each: CommandTiming, ended: datetime) -> Manifest:
    """Return the run's manifest before its judgement."""
    machine, engine, driver = fingerprint(), *_engine()
    return Manifest(
        run_id=new_run_id(EXPERIMENT, each.started),
        experiment=EXPERIMENT,
        profile="ci",
        started=timestamp(each.started),
        ended=timestamp(ended),
        verdict="inconclusive",
        parameters={"figure": each.figure.name},
        # A figure's topology, if it has one, is among its words.
        topology=TopologyRecord("none", "", {"command": ["testbed", *each.figure.words]}),
        versions=own_versions(engine, machine["kernel"]),
        machine=Machine(**machine, engine=engine, storage_driver=driver),
        nics=(),
        load=Load(None, None, None),
        move=None,
        facts=Facts(),
        criteria=(CRITERION,),
    )


def _engine() -> tuple[str, str]:
    """Return the container engine's version and storage driver; `none` without an engine that answers."""
    try:
        info = EngineSocket.from_environment().get("/info")
    except TestbedError:
        return "none", "none"
    return str(info["ServerVersion"]), str(info["Driver"])


def _row(figure: TimedCommand, plays: Sequence[tuple[CommandTiming, Manifest]]) -> BenchRow:
    verdicts = tuple(run.verdict for _timing, run in plays)
    well = [timing for timing, _run in plays if not timing.exit_code]
    failed = [timing.message for timing, _run in plays if timing.exit_code]
    seconds, cpu_s = tuple(each.seconds for each in well), tuple(each.cpu_s for each in well)
    return BenchRow(figure, verdicts, seconds, cpu_s, failed[-1] if failed else "")
