"""Which jars make a Kafka out of a folder: an unpacked release, or a source checkout that has been built."""

from fnmatch import fnmatchcase
from pathlib import Path

from testbed.software.errors import SoftwareError
from testbed.software.release import clients_jar, runnable

_OWN = ("kafka_*", "kafka-clients", "kafka-tools")
"""Own jars that no folder of dependencies holds: the core itself, what it leaves out, and what stands beside it."""


def jars_of(folder: Path) -> list[Path]:
    """The jars to run, sorted by name. Raises SoftwareError for a folder that holds no Kafka, or one not built."""
    if (folder / "gradle.properties").is_file() and (folder / "core").is_dir():
        return _of_checkout(folder)
    jars = runnable((folder / "libs").glob("*.jar"))
    if clients_jar(jars) is not None:
        return jars
    inside = sorted(path.name for path in folder.iterdir() if (path / "libs").is_dir())
    hint = f"; did you mean {folder / inside[0]}?" if inside else ""
    raise SoftwareError(
        f"{folder} is not a Kafka: allowed are an unpacked release (it has libs/kafka-clients-*.jar) and a source "
        f"checkout after `./gradlew jar`{hint}"
    )


def _of_checkout(folder: Path) -> list[Path]:
    properties = _properties(folder / "gradle.properties")
    version = properties.get("version", "")
    built = {jar.name: jar for jar in _built(folder, version)}
    bases = {name.removesuffix(f"-{version}.jar") for name in built}
    own = {base for base in bases if any(fnmatchcase(base, pattern) for pattern in _OWN)}
    core = _dependencies(folder / "core", properties)
    lacking = [f"{pattern}-{version}.jar" for pattern in _OWN if not any(fnmatchcase(base, pattern) for base in own)]
    if lacking or core is None:
        lacking = lacking if core else ["core/build/dependant-libs-*", *lacking]
        raise SoftwareError(
            f"{folder} is a checkout of Kafka {version} that is not built (no {', '.join(lacking)}): run "
            f"`./gradlew jar` in it; or `./gradlew releaseTarGz`, and name the tarball in core/build/distributions"
        )
    tools = _dependencies(folder / "tools", properties)
    needed: dict[str, Path] = {}
    for dependencies in filter(None, (tools, core)):
        needed |= {
            jar.name: jar for jar in runnable(dependencies.glob("*.jar")) if not _stale(jar.name, bases, version)
        }
    # What the modules built last is newer than the copies of it.
    chosen = {name: built.get(name, jar) for name, jar in needed.items()}
    chosen |= {name: built[name] for name in (f"{base}-{version}.jar" for base in own)}
    return runnable(chosen.values())


def _built(folder: Path, version: str) -> list[Path]:
    """The modules' jars at the checkout's present version; modules lie up to three folders deep."""
    found = [jar for depth in ("*", "*/*", "*/*/*") for jar in folder.glob(f"{depth}/build/libs/*-{version}.jar")]
    return runnable(found)


def _stale(jar: str, bases: set[str], version: str) -> bool:
    """Whether it is a module's jar from before the checkout's version changed: those are never removed."""
    if jar.endswith(f"-{version}.jar"):
        return False
    return any(jar.startswith(f"{base}-") and jar[len(base) + 1 : len(base) + 2].isdigit() for base in bases)


def _dependencies(module: Path, properties: dict[str, str]) -> Path | None:
    exact = module / "build" / f"dependant-libs-{properties.get('scalaVersion', '')}"
    if exact.is_dir():
        return exact
    found = [path for path in module.glob("build/dependant-libs*") if path.is_dir()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def _properties(path: Path) -> dict[str, str]:
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}
