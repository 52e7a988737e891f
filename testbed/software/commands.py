"""Other programs, run with their output in a log; a failure carries the log's last lines and its path."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.software.errors import SoftwareError

TAIL_LINES = 12
LOG_BYTES = 1_000_000  # a log that has grown past this is begun anew
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class CommandError(SoftwareError):
    """A program was absent or failed; `.output` is what it said, `.log` the file with that of others before it."""

    def __init__(self, message: str, log: Path | None = None, output: str = "") -> None:
        super().__init__(message)
        self.log = log
        self.output = output


def run_logged(
    argv: Sequence[str | Path],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout_s: float | None = None,
) -> None:
    """Run a program to its end, output appended to `log`; `env` is added to this process's environment.

    Raises CommandError when it is absent, exits other than 0, or is not done in time.
    """
    words = [str(word) for word in argv]
    # A killed set-up must not leave programs behind that still write where its successor works.
    leash = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
    if shutil.which(words[0]) is None:
        raise CommandError(f"{words[0]} is not installed")
    log.parent.mkdir(parents=True, exist_ok=True)
    begun_at = log.stat().st_size if log.exists() else 0
    if begun_at > LOG_BYTES:
        log.unlink()
        begun_at = 0
    with log.open("ab") as output:
        output.write(f"$ {' '.join(words)}\n".encode())
        output.flush()
        try:
            done = subprocess.run(
                [*leash, *words],
                stdout=output,
                stderr=subprocess.STDOUT,
                input=None if stdin is None else stdin.encode(),
                stdin=subprocess.DEVNULL if stdin is None else None,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _failure(words, f"not done after {timeout_s:g} s", log, begun_at) from None
    if done.returncode != 0:
        raise _failure(words, f"exit code {done.returncode}", log, begun_at)


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log, indented, without blank ones."""
    return _last(log.read_text(encoding="utf-8", errors="replace") if log.exists() else "", lines)


def _last(text: str, lines: int) -> str:
    kept = [line for line in _COLOUR.sub("", text).splitlines() if line.strip()][-lines:]
    return "\n".join(f"    {line}" for line in kept)


def _failure(words: Sequence[str], what: str, log: Path, begun_at: int) -> CommandError:
    with log.open("rb") as stream:
        stream.seek(begun_at)
        said = stream.read().decode(errors="replace")
    told = f"{Path(words[0]).name} {' '.join(words[1:3])}: {what}\n{_last(said, TAIL_LINES)}\n  whole log: {log}"
    return CommandError(told, log, said)
