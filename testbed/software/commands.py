"""Programs of this machine, run with their output in a log; and the search for Java.

A failure carries the log's last lines and its path.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import SoftwareError
from testbed.software.distribution import which

TAIL_LINES = 12
LOG_BYTES = 1_000_000  # a longer log is removed before the next command writes to it
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class CommandError(SoftwareError):
    """A program was absent or failed; `.output` is its output, `.log` the file with earlier programs' output, too."""

    def __init__(self, message: str, log: Path | None = None, output: str = "") -> None:
        super().__init__(message)
        self.log = log
        self.output = output


def run_logged(
    argv: Sequence[str | Path],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout_s: float | None = None,
) -> None:
    """Run a program to its end and append its output to `log`; `env` extends this process's environment.

    Raise CommandError when the program is absent, exits with a status other than 0, or times out.
    """
    words = [str(word) for word in argv]
    # After a kill of set-up, no program may continue to write in the folders of its successor.
    leash = ["setpriv", "--pdeathsig", "KILL", "--"] if which("setpriv") else []
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
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _failure(words, f"not done after {timeout_s:g} s", log, begun_at) from None
    if done.returncode != 0:
        raise _failure(words, f"exit code {done.returncode}", log, begun_at)


def tail(log: Path) -> str:
    """Return the last lines of a log, indented, without blank ones."""
    return _last(log.read_text(encoding="utf-8", errors="replace") if log.exists() else "")


def _last(text: str) -> str:
    kept = [line for line in _COLOUR.sub("", text).splitlines() if line.strip()][-TAIL_LINES:]
    return "\n".join(f"    {line}" for line in kept)


def _failure(words: Sequence[str], what: str, log: Path, begun_at: int) -> CommandError:
    with log.open("rb") as stream:
        stream.seek(begun_at)
        said = stream.read().decode(errors="replace")
    message = f"{Path(words[0]).name} {' '.join(words[1:3])}: {what}\n{_last(said)}\n  whole log: {log}"
    return CommandError(message, log, said)


OLDEST_JAVA = 17
JVM_FOLDER = Path("/usr/lib/jvm")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java run-time: its folder (for JAVA_HOME) and major version."""

    home: Path
    major: int

    @property
    def command(self) -> Path:
        """Return the `java` program."""
        return self.home / "bin" / "java"


def find_java() -> Java | None:
    """Return the first Java of at least `OLDEST_JAVA` among JAVA_HOME, PATH and /usr/lib/jvm, or None."""
    for home in dict.fromkeys(_homes()):
        if os.access(home / "bin" / "java", os.X_OK) and (major := _major(home) or 0) >= OLDEST_JAVA:
            return Java(home, major)
    return None


def _homes() -> Iterator[Path]:
    if given := os.environ.get("JAVA_HOME"):
        yield Path(given).resolve()
    if command := shutil.which("java"):
        yield Path(command).resolve().parent.parent
    yield from (path.resolve() for path in sorted(JVM_FOLDER.glob("*")))


def _major(home: Path) -> int | None:
    try:
        text = (home / "release").read_text(encoding="utf-8")  # a tenth of a second cheaper than starting it
    except OSError:
        done = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=False)
        text = done.stderr
    return major_version(text)


def major_version(text: str) -> int | None:
    """Return the major version in a `release` file or in what `java -version` prints."""
    match = re.search(r'version\s+"(\d+)(?:\.(\d+))?|JAVA_VERSION="(\d+)(?:\.(\d+))?', text)
    if match is None:
        return None
    first, second = (match[1], match[2]) if match[1] else (match[3], match[4])
    return int(second) if first == "1" and second else int(first)
