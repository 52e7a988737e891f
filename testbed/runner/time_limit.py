"""The time limit of a run or of another block of work, and the evidence that a stopped or failed one leaves."""

import faulthandler
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType

import pyarrow.parquet as pq

from results.contract.schema import events_table, samples_table
from testbed.errors import KafkaStuck, TestbedError
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed

GRACE_S = 120.0
"""Seconds that the cleanup may take after the time limit, before the process is ended."""
LAST_S = 5.0
"""Seconds until the process is ended even where it runs no Python code; the stacks are written in well below one."""
STACKS = "stacks.txt"


class TimeLimitError(KafkaStuck):
    """The error of a case that did not finish within its time limit and was stopped."""


@contextmanager
def time_limit(seconds: float, what: str, evidence: Path, *, grace_s: float = GRACE_S) -> Iterator[None]:
    """Stop the block after `seconds`, as Ctrl-C would, so that the same cleanup runs. Main thread only.

    At the limit, write the stacks of all threads into `evidence`. If the block hangs for another `grace_s` seconds,
    write the stacks again and end the process, with the exit code of an error. Raise `TimeLimitError` when the limit is
    reached.
    """
    assert threading.current_thread() is threading.main_thread()
    evidence.mkdir(parents=True, exist_ok=True)
    expired = False

    def expire(_number: int, _frame: FrameType | None) -> None:
        nonlocal expired
        expired = True
        faulthandler.dump_traceback(stacks, all_threads=True)
        # SIGINT, and no separate exception, because critical sections hold SIGINT back.
        signal.raise_signal(signal.SIGINT)

    def give_up() -> None:
        faulthandler.dump_traceback(stacks, all_threads=True)
        os._exit(TestbedError.exit_code)

    path = evidence / STACKS
    last = threading.Timer(seconds + grace_s, give_up)
    last.daemon = True
    with path.open("w") as stacks:
        # A process that a shell starts in the background ignores Ctrl-C.
        interrupts = signal.signal(signal.SIGINT, signal.default_int_handler)
        before = signal.signal(signal.SIGALRM, expire)
        # A C thread ends the process even when no Python code runs any more. Its exit code is that of REGRESSED.
        faulthandler.dump_traceback_later(seconds + grace_s + LAST_S, exit=True, file=stacks)
        last.start()
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        except BaseException as error:
            # The interruption may have become any exception on its way out.
            if expired:
                ended = "" if isinstance(error, KeyboardInterrupt) else f"; it ended with {error!r}"
                raise TimeLimitError(_late(what, seconds, path) + ended) from error
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            signal.signal(signal.SIGINT, interrupts)
            last.cancel()
            faulthandler.cancel_dump_traceback_later()
    if expired:
        raise TimeLimitError(_late(what, seconds, path))
    path.unlink()


def _late(what: str, seconds: float, path: Path) -> str:
    return f"{what} was not done after {seconds:g} s and was stopped; {path} has the stacks of its threads"


_LOG_TIMEOUT_S = 20.0


def keep_evidence(folder: Path, recorder: Recorder, testbed: Testbed | None) -> None:
    """Write samples, events and servers' logs, with JVMs' stacks, into `folder`; `missing.txt` has unreadable logs."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(samples_table(recorder.samples()), folder / "samples.parquet", compression="zstd")
    pq.write_table(events_table(recorder.events()), folder / "events.parquet", compression="zstd")
    if testbed is None:
        return
    missing = []
    for host in testbed.topology.hosts:
        try:
            daemon = testbed.daemon(host.name)
            if daemon is None:
                continue
            if host.role.runs_kafka and daemon.pid() is not None:
                daemon.signal("QUIT")  # the JVM writes its threads' stacks into its log
            log = testbed.hosts[host.name].run(["cat", daemon.log], timeout_s=_LOG_TIMEOUT_S).stdout
            (folder / f"{host.name}.log").write_text(log, encoding="utf-8")
        except TestbedError as error:
            missing.append(f"{host.name}: {error}")
    if missing:
        (folder / "missing.txt").write_text("\n".join(missing) + "\n", encoding="utf-8")


@contextmanager
def bounded(
    what: str,
    limit_s: float | None,
    evidence: Path,
    recorder: Recorder,
    testbed: Callable[[], Testbed | None],
    kept_for: type[BaseException] = TestbedError,
) -> Iterator[None]:
    """Bound the time of the block; keep evidence when it raises `kept_for`. Raise that, or `TimeLimitError`.

    On a full disk the evidence is not whole.
    """
    evidence.mkdir(parents=True, exist_ok=True)
    try:
        with time_limit(limit_s, what, evidence) if limit_s is not None else nullcontext():
            yield
    except kept_for:
        with suppress(OSError):  # such as a full disk: the error of the block is the one to report
            keep_evidence(evidence, recorder, testbed())
        raise
    finally:
        if not any(evidence.iterdir()):
            evidence.rmdir()
