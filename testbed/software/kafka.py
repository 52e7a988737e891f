"""Kafka by name: releases fetched through Maven and verified by digest, tarballs and folders imported.

An import is a copy under the digest of its jars: a folder may be rebuilt while a testbed still runs its jars. The same
jars are the same build, in any folder.
"""

import gzip
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from testbed.errors import SoftwareError
from testbed.software.cache import artefact, digest_of, existing, sha256_of
from testbed.software.maven import Coordinates, NotInRegistry, copy_jars, known_versions
from testbed.software.release import (
    AGENT,
    AGENT_FILE,
    JAR_TIME_S,
    LAYOUT,
    LOGGING_FILE,
    LOGGING_PROPERTIES,
    KafkaRelease,
    clients_jar,
    known_digests,
    logging_of,
    missing_binding,
    release_at,
    runnable,
    verify,
    version_in,
)
from testbed.software.source import BUILD_DIGITS, EXAMPLE, VERSION, KafkaSource, Kind, parse_source, too_old

DEFAULT_KAFKA = "4.3.1"
SCALA = "2.13"


def kafka_release(source: str | KafkaSource = DEFAULT_KAFKA) -> KafkaRelease:
    """Return the Kafka that `source` names (see `testbed.software.source`), with the JMX agent; cache it when new.

    Every call hashes every file (0.04 s; a tarball or folder itself, too). Raise SoftwareError when a version does not
    exist, when the source is no Kafka, or when a jar has an unknown digest; and UsageError as `parse_source` does.
    """
    found = parse_source(source) if isinstance(source, str) else source
    if found.kind is Kind.RELEASE:
        folder = artefact("kafka", _release_key(found.text), lambda folder: _fetch(found.text, folder))
        return release_at(found.text, folder)
    if found.kind is Kind.BUILD:
        release = cached_release(found.text)
        if release is None:
            raise SoftwareError(
                f"the build {found.text} is not in the cache (any more): name the tarball or folder it came from"
            )
        return release
    path = found.path
    try:
        if found.kind is Kind.FOLDER:
            return _import_jars(jars_of(path), path)
        return once("kafka-tarballs", sha256_of(path)[:16], lambda folder: _import_jars(unpack(path, folder), path))
    except OSError as error:
        raise SoftwareError(
            f"{path} cannot be copied into the cache: {error.strerror or error} ({error.filename or 'no name'})"
        ) from error


def cached_release(version: str = DEFAULT_KAFKA) -> KafkaRelease | None:
    """Return the release or imported build if it is in the cache and intact; fetch nothing."""
    folder = existing("kafka", _release_key(version))
    return None if folder is None else release_at(version, folder)


def _release_key(version: str) -> str:
    return f"{version}-{LAYOUT}"


def _fetch(version: str, folder: Path) -> None:
    libs = folder / "libs"
    wanted = [Coordinates("org.apache.kafka", name, version) for name in (f"kafka_{SCALA}", "kafka-tools")]
    try:
        copy_jars(wanted, libs)
    except NotInRegistry as error:
        raise SoftwareError(_unknown_version(version)) from error
    binding = missing_binding(tuple(path.name for path in libs.iterdir()))
    if binding is not None:
        copy_jars([*wanted, binding], libs)
    agent = _add_agent(folder)
    verify(version, {**{jar.name: sha256_of(jar) for jar in libs.iterdir()}, str(AGENT): agent})
    _complete(folder)


def _add_agent(folder: Path) -> str:
    """Fetch the JMX agent into the folder of a Kafka, and return its sha256."""
    copy_jars([AGENT], folder, transitive=False)
    (agent,) = folder.glob("jolokia-*.jar")
    return sha256_of(agent.rename(folder / AGENT_FILE))


def _complete(folder: Path) -> None:
    """Add the logging configuration to the folder of a Kafka, and give all its files their time."""
    jars = sorted((folder / "libs").iterdir())
    logging = folder / LOGGING_FILE
    logging.write_text(LOGGING_PROPERTIES[logging_of(tuple(jar.name for jar in jars))], encoding="utf-8")
    for path in (*jars, folder / AGENT_FILE, logging):
        os.utime(path, (JAR_TIME_S, JAR_TIME_S))


def _unknown_version(version: str) -> str:
    exist = [v for v in known_versions("org.apache.kafka", f"kafka_{SCALA}") if VERSION.fullmatch(v)]
    missing = f"Maven's registry has no Kafka {version} (asked for org.apache.kafka:kafka_{SCALA}:{version})."
    if exist:
        return f"{missing} It has, newest first: {', '.join(list(reversed(exist))[:12])}."
    return f"{missing} Known to work here: {', '.join(sorted(known_digests(), reverse=True))}."


_OWN = ("kafka_*", "kafka-clients", "kafka-tools")
"""Patterns of the jars that no dependency folder has: the core, the clients that it omits, and the tools."""


def jars_of(folder: Path) -> list[Path]:
    """Return the jars to run, sorted by name. Raise SoftwareError when a folder has no Kafka, or an unbuilt one."""
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
    # The modules' latest builds are newer than the copies.
    chosen = {name: built.get(name, jar) for name, jar in needed.items()}
    chosen |= {name: built[name] for name in (f"{base}-{version}.jar" for base in own)}
    return runnable(chosen.values())


def _built(folder: Path, version: str) -> list[Path]:
    """Return the modules' jars at the checkout's present version; modules lie up to three folders deep."""
    found = [jar for depth in ("*", "*/*", "*/*/*") for jar in folder.glob(f"{depth}/build/libs/*-{version}.jar")]
    return runnable(found)


def _stale(jar: str, bases: set[str], version: str) -> bool:
    """Return whether it is a module's jar of an earlier checkout version: a build never removes such jars."""
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


_MEMO = "build"
COPY_BYTES = 1 << 20


def once(name: str, key: str, unpack_and_lay: Callable[[Path], KafkaRelease]) -> KafkaRelease:
    """Return the result of `unpack_and_lay(empty folder)` for the digest `key`; the same key is unpacked once."""
    memo = existing(name, key)
    if memo is not None:
        version = (memo / _MEMO).read_text(encoding="utf-8")
        folder = existing("kafka", f"{version}-{LAYOUT}")
        if folder is not None:
            return release_at(version, folder)
    with tempfile.TemporaryDirectory(prefix="testbed-unpacked-") as unpacked:
        release = unpack_and_lay(Path(unpacked))
    artefact(name, key, lambda folder: _note(folder, release.version))
    return release


def _note(folder: Path, version: str) -> None:
    (folder / _MEMO).write_text(version, encoding="utf-8")


def _import_jars(jars: Sequence[Path], where: Path) -> KafkaRelease:
    try:
        version = version_in(jars)
    except SoftwareError as error:
        raise SoftwareError(f"{where} is not a Kafka: {error}") from error
    if not VERSION.fullmatch(version):
        raise SoftwareError(
            f"{where}: its kafka-clients jar calls itself {version!r}, which is no version; allowed: {EXAMPLE}, "
            f"also with up to 30 characters as in {EXAMPLE}-our-fix.2 (`version` in gradle.properties)"
        )
    old = too_old(version)
    if old:
        raise SoftwareError(f"{where}: {old}")
    if twice := _modules_twice(jars):
        raise SoftwareError(
            f"{where} has several jars of one module of Kafka: {', '.join(twice)}; the JVM would run the first one. "
            "Remove all but one of each module"
        )
    return laid(jars, version)


def _modules_twice(jars: Sequence[Path]) -> list[str]:
    """Return the jars of Kafka's modules of which there are several, such as a changed one and the original."""
    modules = [_base(jar.name) for jar in jars]
    return [
        jar.name
        for jar, module in zip(jars, modules, strict=True)
        if module.startswith("kafka") and modules.count(module) > 1
    ]


def laid(jars: Sequence[Path], label: str) -> KafkaRelease:
    """Copy jars into the cache as a separate Kafka and return it. Its name: `label` and digits of their digest."""
    digests = {jar: sha256_of(jar) for jar in jars}
    digest = digest_of(sorted((jar.name, sha256) for jar, sha256 in digests.items()))
    build = f"{label}+{digest[:BUILD_DIGITS]}"
    return release_at(build, artefact("kafka", f"{build}-{LAYOUT}", lambda folder: _lay(digests, folder)))


def _lay(digests: Mapping[Path, str], folder: Path) -> None:
    """Copy jars with these digests into the folder of a Kafka, and complete it."""
    libs = folder / "libs"
    libs.mkdir()
    for jar, sha256 in digests.items():
        shutil.copyfile(jar, libs / jar.name)
        if sha256_of(libs / jar.name) != sha256:
            raise SoftwareError(f"{jar} was built again while it was copied; run the command again after the build")
    _add_binding(libs)
    expected = {known[str(AGENT)] for known in known_digests().values()}
    if _add_agent(folder) not in expected:
        raise SoftwareError(
            f"the {AGENT} that Maven gave is not the one this project knows (sha256 expected: "
            f"{', '.join(sorted(expected))}); check the mirror that Maven's settings name"
        )
    _complete(folder)


def _add_binding(libs: Path) -> None:
    """Add the logging jars that a build lacks; keep its own jars of any version."""
    binding = missing_binding(tuple(path.name for path in libs.iterdir()))
    if binding is None:
        return
    have = {_base(path.name) for path in libs.iterdir()}
    with tempfile.TemporaryDirectory(prefix="testbed-binding-") as fetched:
        copy_jars([binding], Path(fetched))
        for jar in sorted(Path(fetched).iterdir()):
            if _base(jar.name) not in have:
                shutil.copyfile(jar, libs / jar.name)


def _base(jar: str) -> str:
    """Return the name of a jar without its version."""
    return re.sub(r"-\d[\w.+-]*\.jar$", "", jar)


class NotARelease(SoftwareError):
    """A file is no tarball of a release; `why` says it without what a tarball of Apache Kafka is called."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def unpack(tarball: Path, target: Path) -> list[Path]:
    """Extract the jars of a tarball's `libs/`, and nothing else, into `target`; return them. Other paths are ignored.

    Raise SoftwareError when the tarball is incomplete, and `NotARelease` when it has no Kafka.
    """
    try:
        with tarfile.open(tarball, "r:gz") as archive:
            for _folder, name, content in jars_of_tar(archive):
                with (target / name).open("wb") as out:
                    shutil.copyfileobj(content, out, COPY_BYTES)
            entries = len(archive.getmembers())
            # Read to the very end: only there does gzip detect a truncation.
            while archive.fileobj and archive.fileobj.read(COPY_BYTES):
                continue
    except (EOFError, zlib.error) as error:
        raise SoftwareError(_truncated(tarball, error)) from error
    except (gzip.BadGzipFile, tarfile.ReadError) as error:
        if "unexpected end" in str(error):
            raise SoftwareError(_truncated(tarball, error)) from error
        why = f"not a gzip'ed tar archive ({error})"
        raise NotARelease(
            f"{tarball} is not a release tarball: {why}; a release's is called kafka_2.13-4.3.1.tgz", why
        ) from error
    jars = runnable(target.iterdir())
    if clients_jar(jars) is None:
        why = f"no kafka-clients-*.jar in its libs/ ({len(jars)} jars there, among {entries} entries)"
        raise NotARelease(
            f"{tarball} is not a Kafka: {why}. The binary release is kafka_2.13-….tgz; one that ends in -src.tgz has "
            "to be built first",
            why,
        )
    return jars


def jars_of_tar(archive: tarfile.TarFile) -> Iterator[tuple[str, str, IO[bytes]]]:
    """Yield the folder, the name and the content of each jar in a folder `libs` of an archive."""
    for member in archive:
        folder, _, name = member.name.rpartition("/")
        if member.isfile() and name.endswith(".jar") and folder.rpartition("/")[2] == "libs":
            content = archive.extractfile(member)
            assert content is not None
            with content:
                yield folder, name, content


def _truncated(tarball: Path, error: Exception) -> str:
    return (
        f"{tarball} is truncated or damaged ({error}; {tarball.stat().st_size:,} bytes): get it again, "
        "and compare it with the release's .sha512"
    )
