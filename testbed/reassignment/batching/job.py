"""A reassignment that outlives its process: its plan, its control and its owner, on disk.

Each job has a folder in ``moves/`` of the state folder. A job does not record its progress: the cluster reports it.
`control` is a separate file, since other processes write it while the move's process reads it.
"""

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from results.contract import durable
from results.contract.document import DocumentError, decode
from results.contract.untrusted import parse_json
from testbed.errors import TestbedError, reason
from testbed.owner import Owner
from testbed.paths import state_dir
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.turn import Mode
from testbed.reassignment.plan import Plan
from testbed.reassignment.plan_file import plan_from_json

Wish = Literal["run", "pause", "cancel"]
_SCHEMA = 1


class JobError(TestbedError):
    """A stored reassignment cannot be written or read, or the requested one does not exist."""


@dataclass(frozen=True, slots=True)
class JobControl:
    """The settings that a user may change during the move, from the next step on.

    They are the limits, the throttle (B/s; None: no throttle), and the wish to run, pause or cancel.
    """

    limits: BatchLimits = field(default_factory=BatchLimits)
    throttle_bytes_per_s: int | None = None
    wish: Wish = "run"


def unpaused(control: JobControl) -> JobControl:
    """Return the control with which a paused job continues, or the same control if the job is not paused."""
    return replace(control, wish="run") if control.wish == "pause" else control


@dataclass(frozen=True, slots=True)
class Job:
    """The constant part of a job, and its owner: the process that drives it, or drove it.

    `command_config` is the path of the client's properties; `recover` connects with it to restore the throttle. The job
    holds no secrets. `resume` takes another path. `topic_ids` are the topics' ids at the job's begin: a topic with
    another id was created again, and is not in the plan.
    """

    id: str
    bootstrap: str
    cluster_id: str
    mode: Mode
    plan: Plan
    owner: Owner
    command_config: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def new(cls, bootstrap: str, cluster_id: str, mode: Mode, plan: Plan, command_config: str | None = None) -> "Job":
        """Return a job of this process; nothing is written yet."""
        return cls(uuid.uuid4().hex[:8], bootstrap, cluster_id, mode, plan, Owner.this_process(), command_config)


class JobFolder:
    """The folder of stored reassignments; by default in this user's state folder."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else state_dir() / "moves"

    def write(self, job: Job, control: JobControl) -> None:
        """Write both files completely to disk; the job last, since its file makes the job exist."""
        self._write_control(job.id, control)
        self.write_job(job)

    def write_job(self, job: Job) -> None:
        """Write the constant part of a job alone: another process may steer the job meanwhile."""
        plain = {each.name: getattr(job, each.name) for each in fields(job)}
        plain |= {"owner": asdict(job.owner), "plan": json.loads(job.plan.to_json())}
        _write(self.path / job.id / "job.json", plain)

    def steer(self, job_id: str, change: Callable[[JobControl], JobControl]) -> JobControl:
        """Write the control that ``change`` makes of the present one, and return it.

        No other process writes or removes the control meanwhile. Raise `JobError` when the job has ended, or when a
        cancelled job would get another control: a cancellation is final.
        """
        with self._held():
            before = self.control(job_id)
            control = change(before)
            if before.wish == "cancel" and control != before:
                raise JobError(f"reassignment {job_id} is being cancelled: nothing else can be changed")
            self._write_control(job_id, control)
        return control

    def read(self, job_id: str) -> Job:
        """Return a job. Raise `JobError` naming the file when it is unreadable."""
        document = self._document(job_id, "job.json")
        path = self.path / job_id / "job.json"
        try:
            if document["mode"] not in get_args(Mode):
                raise ValueError(f"mode {document['mode']!r}")
            plan = plan_from_json(json.dumps(document.pop("plan")), str(path))
            return Job(plan=plan, owner=Owner(**document.pop("owner")), **document)
        except (KeyError, TypeError, ValueError) as error:
            raise JobError(f"{path}: not a stored reassignment: {reason(error)}") from error

    def control(self, job_id: str) -> JobControl:
        """Return the control of a job. Raise `JobError` naming the file when it is unreadable."""
        document = self._document(job_id, "control.json")
        try:
            return decode(JobControl, document, "control")
        except DocumentError as error:
            raise JobError(f"{self.path / job_id / 'control.json'}: cannot be understood: {error}") from error

    def remove(self, job_id: str) -> None:
        """Remove a job that has ended; a missing one is not an error."""
        folder = self.path / job_id
        if not folder.is_dir():
            return
        with self._held():
            for path in (folder / "job.json", folder / "control.json"):  # the job first: without it the control is void
                for each in (path, *durable.temporaries(path)):
                    each.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # a file of another program may be in the folder
                folder.rmdir()

    def ids(self) -> list[str]:
        """Return the ids of all jobs."""
        return sorted(path.parent.name for path in self.path.glob("*/job.json"))

    def all(self) -> list[Job]:
        """Return all jobs, without one that ends meanwhile. Raise `JobError` naming a file that cannot be read."""
        found = []
        for job_id in self.ids():
            try:
                found.append(self.read(job_id))
            except JobError:
                if job_id in self.ids():
                    raise
        return found

    def of_cluster(self, cluster_id: str) -> Job:
        """Return the one job of a cluster. Raise `JobError` when there is none, or more than one."""
        mine = [job for job in self.all() if job.cluster_id == cluster_id]
        if not mine:
            raise JobError(
                f"no stored reassignment of cluster {cluster_id}: none was executed from this account, or all ended"
            )
        if len(mine) > 1:
            raise JobError(
                f"several stored reassignments of cluster {cluster_id}: {', '.join(job.id for job in mine)}; remove "
                f"the folders of the ended ones from {self.path}"
            )
        return mine[0]

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the lock under which controls are changed and jobs removed. A process must not enter it twice."""
        durable.make_folder(self.path, 0o700)
        with durable.lock(self.path / "lock"):
            yield

    def _write_control(self, job_id: str, control: JobControl) -> None:
        _write(self.path / job_id / "control.json", asdict(control))

    def _document(self, job_id: str, name: str) -> dict[str, Any]:
        path = self.path / job_id / name
        try:
            document = parse_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            there = ", ".join(self.ids()) or "none"
            raise JobError(f"no stored reassignment {job_id!r}; there are: {there}") from None
        except (OSError, ValueError) as error:
            raise JobError(f"{path}: cannot be read: {error}") from error
        if not isinstance(document, dict) or document.pop("schema", None) != _SCHEMA:
            raise JobError(f"{path}: not of schema {_SCHEMA}: written by another version")
        return document


def _write(path: Path, document: Mapping[str, Any]) -> None:
    durable.make_folder(path.parent, 0o700)
    durable.write(path, json.dumps({"schema": _SCHEMA, **document}, indent=1))
