"""Kills of any command at any moment, drawn by a seed; and the table of what came of them.

Only what carries the state folder of these tests counts as left, so that the machine may have other work.
"""

import contextlib
import json
import random
import shutil
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.paths import data_dir
from testbed.provision.testbed import Testbed
from tests.containers.conftest import cli
from tests.containers.kills import SHORT_RUN, TOPOLOGY, Killed, everything, kill

RUNS_OF_AN_ARCHIVE = 120


@dataclass(frozen=True, slots=True)
class Target:
    """A command that is killed: its share of the kills, and how long it takes on two cores."""

    name: str
    share: int
    span_s: float


TARGETS = (
    Target("up", 22, 6.0),
    Target("down", 12, 1.5),
    Target("run", 20, 50.0),
    Target("replay", 14, 50.0),
    Target("nightly", 10, 70.0),
    Target("import", 12, 8.0),
    Target("capture", 10, 5.0),
)
"""A command that has ended by its moment is killed in half of that time."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One kill: of which command, and when, in seconds from its start."""

    command: str
    at_s: float


def drawn(seed: int, count: int) -> list[Draw]:
    """The kills of a seed. Each command comes as often as its share says, or once more; the order is drawn, too."""
    chosen = random.Random(seed)
    whole = sum(target.share for target in TARGETS)
    often = {target: count * target.share // whole for target in TARGETS}
    for target in chosen.sample(TARGETS, len(TARGETS))[: count - sum(often.values())]:
        often[target] += 1
    found = [Draw(t.name, round(chosen.uniform(0.02, 1.0) * t.span_s, 3)) for t in TARGETS for _ in range(often[t])]
    chosen.shuffle(found)
    return found


class Series:
    """The kills, one after the other; it has what they need, and puts it away at the end."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._topology = folder / "killed.yaml"
        self._topology.write_text(TOPOLOGY)
        self._archive = folder / "runs.tar"

    def kill(self, draw: Draw) -> Killed:
        """Do one; what it made before is not counted as left."""
        with self._prepared(draw.command) as (words, stays):
            # What an import is killed over may be there before, and may stay: whole runs do not count.
            return kill(words, draw.at_s, before=everything(own=True), stays=stays, own=True)

    @contextlib.contextmanager
    def _prepared(self, command: str) -> Iterator[tuple[tuple[str, ...], str]]:
        topology, name = str(self._topology), self._name
        if command == "up":
            yield ("up", topology, "--name", name), name
        elif command == "down":
            self._up()
            yield ("down", name), name
        elif command == "run":
            yield (*SHORT_RUN, "--topology", topology), ""
        elif command == "replay":
            yield ("replay", "throttle-removed-early"), ""
        elif command == "nightly":
            yield ("nightly", "--suite", "brief", "--scenario", "move", "--out", str(self._folder / "night")), ""
        elif command == "import":
            shutil.rmtree(data_dir() / "store", ignore_errors=True)
            yield ("results", "import", str(self._runs())), ""
        else:
            yield from self._captured()

    def _captured(self) -> Iterator[tuple[tuple[str, ...], str]]:
        self._up()
        try:
            shown = json.loads(cli("status", self._name, "--json").stdout)
            out = self._folder / "captured"
            shutil.rmtree(out, ignore_errors=True)
            with Testbed.attach(self._name) as testbed, testbed.admin() as admin:
                admin.create_topic("seen", {0: (1,)})
            plan = self._folder / "plan.json"
            plan.write_text('{"version": 1, "partitions": [{"topic": "seen", "partition": 0, "replicas": [2]}]}')
            words = ("capture", "seen", "--bootstrap", ",".join(shown["bootstrap"]), "--out", str(out))
            # It ends after five seconds: a folder that it has written refuses a second try.
            yield (*words, "--measure", "4s", "--plan", str(plan)), ""
            files = sorted(path.name for path in out.glob("*"))
            assert files in ([], ["incident.yaml", "topology.yaml"]), f"half a capture: {files}"
        finally:
            told = cli("down", self._name)
            assert told.returncode == 0, told.stdout + told.stderr

    def _up(self) -> None:
        told = cli("up", str(self._topology), "--name", self._name)
        assert told.returncode == 0, told.stderr

    def _runs(self) -> Path:
        """An archive of many runs, made once."""
        if not self._archive.exists():
            from results.contract.archive import export_runs
            from results.contract.store import Store
            from tests.results.many import filled, some_runs
            from tests.results.synthetic import synthetic_run

            many = filled(Store.open(self._folder / "many"), some_runs(synthetic_run().data(), RUNS_OF_AN_ARCHIVE))
            export_runs(many, many.runs(), self._archive)
        return self._archive


def table(lines: Sequence[str]) -> str:
    """The rows of the table from the log's lines."""
    found = defaultdict(list)
    for line in lines:
        row = json.loads(line)
        found[row["draw"]["command"]].append(row["killed"])
    head = (
        "| killed | kills | seconds from the start | stages | `gc` had something to do | "
        "seconds until nothing was left: median (most) | left then |"
    )
    rows = [head, "|---|---|---|---|---|---|---|"]
    for target in TARGETS:
        kills = found.get(target.name, [])
        if not kills:
            continue
        at = [each["at_s"] for each in kills]
        clean = [each["clean_s"] for each in kills]
        busy = sum(each["found"] != "nothing to collect" for each in kills)
        left = sorted({item for each in kills for item in each["left"]})
        stages = len({each["stage"] for each in kills})
        rows.append(
            f"| `{target.name}` | {len(kills)} | {min(at):g} to {max(at):g} | {stages} | {busy} | "
            f"{statistics.median(clean):.1f} ({max(clean):.1f}) | {', '.join(left) or 'nothing'} |"
        )
    return "\n".join(rows)
