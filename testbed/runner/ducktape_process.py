"""A process of ducktape: it is started, its output is followed, and it is ended with all of its tests."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Progress = Callable[[str], None]
LOG = "ducktape.log"
"""The file with ducktape's output, in the session's folder."""
INTERRUPTED_S = 90.0
"""Seconds that an interrupted test may take to restore its changes."""


def run_ducktape(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    progress_of: Callable[[str], str],
    progress: Progress,
    *,
    longest_s: float | None = None,
    after: Callable[[int], None] = lambda _pid: None,
) -> None:
    """Run ducktape to its end, failed or not. Its output goes into `ducktape.log` in the folder.

    `progress_of` returns what a line of the output says to the user; empty: nothing. After `longest_s` s ducktape is
    killed. Ctrl-C ends the test under way first. `after` is called with the ended process's number, in any case.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # ducktape has its own process group, so that this process alone forwards Ctrl-C to it, once.
        process_group=0,
    )
    over = threading.Timer(longest_s or 0.0, _signal_group, [process, signal.SIGKILL])
    over.daemon = True
    if longest_s is not None:
        over.start()
    try:
        _listen(process, folder / LOG, progress_of, progress)
        process.wait()
    except BaseException:
        progress("interrupted: ending the test under way")
        rest = interrupt(process)
        with (folder / LOG).open("a", encoding="utf-8") as file:
            file.write(rest)
        raise
    finally:
        over.cancel()
        _end_group(process.pid)
        after(process.pid)


def interrupt(process: "subprocess.Popen[str]") -> str:
    """End ducktape and its tests by SIGINT; return the rest of its output, which says what they could not restore.

    After SIGTERM ducktape kills its tests and then waits for them forever.
    """
    _signal_group(process, signal.SIGINT)
    try:
        return process.communicate(timeout=INTERRUPTED_S)[0]
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        _signal_group(process, signal.SIGKILL)
        return process.communicate()[0]


def _listen(process: "subprocess.Popen[str]", log: Path, progress_of: Callable[[str], str], progress: Progress) -> None:
    assert process.stdout is not None
    with log.open("w", encoding="utf-8") as file:
        for line in process.stdout:
            file.write(line)
            file.flush()
            if text := progress_of(line):
                progress(text)


def _signal_group(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    if process.poll() is None:
        os.killpg(process.pid, number)


def _end_group(pid: int) -> None:
    """End what a session left of its process group: ducktape's processes of a test may outlive it."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
