"""A session of the prompt: the testbed, its names, the move that runs, and what a leaving user must know."""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from testbed.cli.command import Command
from testbed.cli.prompt.background_move import BackgroundMove
from testbed.cli.prompt.grammar import Grammar
from testbed.cli.prompt.vocabulary import Vocabulary
from testbed.errors import TestbedError
from testbed.faults import Faults, as_text
from testbed.owner import Owner
from testbed.provision.testbed import Testbed
from testbed.reassignment.batching.job import Job, JobFolder

_COMPLETION_S = 2.0
_NAMES_LAST_S = 5.0


class Session:
    """What every command uses. Each connects to the cluster itself: brokers may be killed between two commands."""

    def __init__(self, testbed: Testbed, grammar: Grammar, *, interactive: bool) -> None:
        self.testbed, self.grammar, self.interactive = testbed, grammar, interactive
        self.faults = Faults(testbed, by_hand=True)
        self.move: BackgroundMove | None = None
        self.notices: list[str] = []
        """What happened in the background; the prompt prints it before the next command."""
        self._topics: tuple[str, ...] = ()
        self._topics_s = 0.0
        self.names = Vocabulary.of(
            testbed.topology, self._current_topics, lambda: [entry.id for entry in self.faults.list()], grammar.names
        )
        self.completing = Vocabulary.of(testbed.topology, self._recent_topics, self._recent_faults, grammar.names)

    def say(self, text: str) -> None:
        """Print the result of a command."""
        print(text, flush=True)

    def remark(self, text: str) -> None:
        """Print what is not a result: progress, and what happened in the background."""
        print(text, file=sys.stderr, flush=True)

    def command_line(self, words: Sequence[str]) -> int:
        """Run a command of the command line, such as `watch NAME`; return its exit code."""
        return Command(words[0]).run(words[1:])

    def job(self) -> Job | None:
        """Return the stored reassignment of this cluster, also one of another process; None without one."""
        return next((job for job in JobFolder().all() if job.cluster_id == self.testbed.state.cluster_id), None)

    def running_move(self) -> BackgroundMove | None:
        """Return the move of this session while it runs."""
        return self.move if self.move is not None and self.move.running else None

    def is_carried_out(self, job: Job) -> bool:
        """Return whether a process carries the reassignment out: a live one, or this one while its thread runs."""
        return self.running_move() is not None if job.owner == Owner.this_process() else job.owner.alive()

    def greeting(self) -> list[str]:
        """Return the lines at the beginning of an interactive session."""
        topology = self.testbed.topology
        return [
            f"testbed {self.testbed.name}: {len(topology.hosts)} hosts, {len(topology.brokers)} of them brokers. "
            "`help` lists the commands, Tab completes, Ctrl-D leaves.",
            *self.unfinished(),
        ]

    def unfinished(self) -> list[str]:
        """Return one line for each fault that is not healed and each move that has not ended."""
        lines = [
            f"not healed: fault {entry.id}, {as_text(entry.fault)}, by {entry.by}; "
            f"`heal {entry.id}` here, or `testbed fault clear {self.testbed.name} {entry.id}`"
            for entry in self.faults.list()
        ]
        job = self.job()
        if job is not None:
            lines.append(self._of_job(job))
        return lines

    def _of_job(self, job: Job) -> str:
        topics = ", ".join(job.plan.topics())
        if job.owner.alive() and job.owner != Owner.this_process():
            return f"not ended: the move of {topics}; process {job.owner.pid} carries it out"
        bootstrap = ",".join(self.testbed.bootstrap)
        return (
            f"not ended: the move of {topics}; it goes on as its throttle permits. `resume` here, or "
            f"`testbed reassign resume --bootstrap {bootstrap}`, follows it and removes the throttle at its end"
        )

    def _current_topics(self) -> tuple[str, ...]:
        with self.testbed.admin() as admin:
            self._topics, self._topics_s = admin.topics(), time.monotonic()
        return self._topics

    def _recent_topics(self) -> tuple[str, ...]:
        """Return the topics for a completion: it must not wait for a cluster that does not answer."""
        if time.monotonic() - self._topics_s > _NAMES_LAST_S:
            with suppress(TestbedError), self.testbed.admin(timeout_s=_COMPLETION_S) as admin:
                self._topics = admin.topics()
            self._topics_s = time.monotonic()
        return self._topics

    def _recent_faults(self) -> list[int]:
        with suppress(TestbedError):
            return [entry.id for entry in self.faults.list()]
        return []
