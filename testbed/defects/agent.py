"""The Java agent that breaks a broker: its jar, its option, its check of a release, and its notes on a host."""

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.defects.parse import name_in
from testbed.errors import SoftwareError, TestbedError
from testbed.hosts import Host
from testbed.software.cache import artefact
from testbed.software.commands import find_java
from testbed.software.maven import MavenProject
from testbed.software.release import KafkaRelease

PROJECT = MavenProject("the agent of the defects", Path(__file__).parent / "java")
JAR = "testbed-defects.jar"
TARGET = f"/opt/testbed/defects/{JAR}"
"""The path of the jar on a host."""
NOTES = "/run/testbed-defects"
"""The file on a host in which a broker notes that a defect is loaded, and when it first acts."""
_CHECK_S = 60.0


@dataclass(frozen=True, slots=True)
class DefectNote:
    """One line of a broker's notes. `at_ms` is milliseconds since the epoch; `detail` says what the broker did."""

    name: str
    what: str
    """`loaded` or `acted`."""
    at_ms: int
    detail: str = ""


def agent_jar() -> Path:
    """Return the jar in the cache; build it when its sources are new. Raise `SoftwareError` on failure."""
    return artefact("defects", PROJECT.digest()[:16], _build) / JAR


def agent_flag(options: Sequence[str]) -> str:
    """Return the JVM's option that loads the defects of a host."""
    return f"-javaagent:{TARGET}={';'.join(options)}"


def require_methods(release: KafkaRelease, names: Iterable[str]) -> None:
    """Raise `SoftwareError`, which names the defect, the release and the method, when a release lacks a method."""
    java = find_java()
    if java is None:
        raise SoftwareError("a defect needs Java on this machine, to read the release's classes; on Debian: openjdk-17")
    jar, libs = str(agent_jar()), str(release.libs)
    command = [str(java.command), "-cp", jar, "testbed.defects.Check", "--libs", libs, *dict.fromkeys(names)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_CHECK_S, check=False)
    if done.returncode == 0:
        return
    missing = [line.split(maxsplit=2)[1:] for line in done.stdout.splitlines() if line.startswith("missing ")]
    if not missing:
        raise SoftwareError(
            f"the agent's check of Kafka {release.version} failed: {(done.stderr or done.stdout).strip()}"
        )
    lacking = "; ".join(f"{name}: it has no {method}" for name, method in missing)
    raise SoftwareError(f"Kafka {release.version} cannot have a defect, {lacking}")


def install(host: Host) -> None:
    """Copy the jar to a host and remove the notes of earlier brokers, before Kafka starts there."""
    host.put(agent_jar().read_bytes(), TARGET)
    forget_notes(host)


def forget_notes(host: Host) -> None:
    """Remove the notes of a host's brokers, as before the start of a new cluster."""
    host.run(["rm", "-f", NOTES])


def notes(host: Host) -> tuple[DefectNote, ...]:
    """Return the notes of a host's brokers; empty when no broker has written one."""
    return parse_notes(host.run(["sh", "-c", f"cat {NOTES} 2>/dev/null || true"]).stdout)


def parse_notes(text: str) -> tuple[DefectNote, ...]:
    """Return the notes in a text. Raise `TestbedError` for a line that is none."""
    found = []
    for line in text.splitlines():
        name, what, at, *detail = [*line.split(" ", 3), "", ""][:4]
        if what not in ("loaded", "acted") or not at.isdecimal():
            raise TestbedError(f"{NOTES}: not a note of the defects' agent: {line!r}")
        found.append(DefectNote(name, what, int(at), detail[0]))
    return tuple(found)


def not_loaded(options: Sequence[str], found: Iterable[DefectNote]) -> list[str]:
    """Return the names of the defects among `options` that no broker has noted as loaded. Pure."""
    loaded = {note.name for note in found if note.what == "loaded"}
    return [name for name in map(name_in, options) if name not in loaded]


def _build(folder: Path) -> None:
    PROJECT.run(["package", "-Dmaven.test.skip=true", f"-Ddefects.to={folder}"])
