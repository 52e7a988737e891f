"""A tarball, an unpacked release or a built checkout, copied into the cache under the digest of its jars.

The same jars are the same build, wherever they lay. A copy, because a folder is built again while a testbed
still runs what was in it.
"""

import gzip
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.software.cache import artefact, existing, sha256_of
from testbed.software.errors import SoftwareError
from testbed.software.folders import jars_of
from testbed.software.known import known_digests
from testbed.software.maven import copy_jars
from testbed.software.release import (
    AGENT,
    JAR_TIME_S,
    LAYOUT,
    LOGGING_PROPERTIES,
    KafkaRelease,
    clients_jar,
    digest_of,
    identify,
    logging_of,
    missing_binding,
    release_at,
    runnable,
)
from testbed.software.source import BUILD_DIGITS, VERSION, KafkaSource, Kind, too_old

_MEMO = "build"
_COPY_BYTES = 1 << 20


def imported(source: KafkaSource) -> KafkaRelease:
    """The Kafka in a tarball or folder, in the cache. Raises SoftwareError saying what is wrong with it."""
    try:
        return _imported(source)
    except OSError as error:
        raise SoftwareError(
            f"{source.path} cannot be copied into the cache: {error.strerror or error} ({error.filename or 'no name'})"
        ) from error


def _imported(source: KafkaSource) -> KafkaRelease:
    if source.kind is Kind.FOLDER:
        return _import(jars_of(source.path), source.path)
    return once("kafka-tarballs", sha256_of(source.path)[:16], lambda folder: _unpacked(source.path, folder))


def _unpacked(tarball: Path, folder: Path) -> KafkaRelease:
    return _import(unpack(tarball, folder), tarball)


def once(name: str, key: str, unpack_and_lay: Callable[[Path], KafkaRelease]) -> KafkaRelease:
    """What `unpack_and_lay(empty folder)` makes of something with the digest `key`; unchanged, it is not made again."""
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


def _import(jars: Sequence[Path], where: Path) -> KafkaRelease:
    try:
        version = identify(jars).version
    except SoftwareError as error:
        raise SoftwareError(f"{where} is not a Kafka: {error}") from error
    if not VERSION.fullmatch(version):
        raise SoftwareError(f"{where}: its kafka-clients jar calls itself {version!r}, which is no version")
    old = too_old(version)
    if old:
        raise SoftwareError(f"{where}: {old}")
    return laid(jars, version)


def laid(jars: Sequence[Path], label: str) -> KafkaRelease:
    """Jars put into the cache as a Kafka of their own, called `label` and some digits of their digest."""
    digest = digest_of({jar.name: sha256_of(jar) for jar in jars})
    build = f"{label}+{digest[:BUILD_DIGITS]}"
    return release_at(build, artefact("kafka", f"{build}-{LAYOUT}", lambda folder: _lay(jars, folder)))


def _lay(jars: Sequence[Path], folder: Path) -> None:
    libs = _made(folder / "libs")
    for jar in jars:
        shutil.copyfile(jar, libs / jar.name)
    _add_binding(libs)
    copy_jars([AGENT], folder, transitive=False)
    (agent,) = folder.glob("jolokia-*.jar")
    agent.rename(folder / "jolokia.jar")
    expected = {known[str(AGENT)] for known in known_digests().values()}
    if sha256_of(folder / "jolokia.jar") not in expected:
        raise SoftwareError(
            f"the {AGENT} that Maven gave is not the one this project knows (sha256 expected: "
            f"{', '.join(sorted(expected))}); look at which mirror Maven's settings name"
        )
    names = tuple(path.name for path in libs.iterdir())
    (folder / "logging.properties").write_text(LOGGING_PROPERTIES[logging_of(names)], encoding="utf-8")
    for path in (*libs.iterdir(), folder / "jolokia.jar", folder / "logging.properties"):
        os.utime(path, (JAR_TIME_S, JAR_TIME_S))


def _add_binding(libs: Path) -> None:
    """Add what a build lacks to log at all; jars it has, in whatever version, are kept."""
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
    """The name of a jar without its version."""
    return re.sub(r"-\d[\w.+-]*\.jar$", "", jar)


def unpack(tarball: Path, target: Path) -> list[Path]:
    """The jars of a tarball's `libs/`, into `target`, and nothing else of it, whatever paths it holds.

    Raises SoftwareError for what is no whole tarball, or has no Kafka in it.
    """
    others = 0
    try:
        with tarfile.open(tarball, "r:gz") as archive:
            for member in archive:
                folder, _, name = member.name.rpartition("/")
                if not (member.isfile() and name.endswith(".jar") and folder.rpartition("/")[2] == "libs"):
                    others += 1
                    continue
                content = archive.extractfile(member)
                assert content is not None
                with content, (target / name).open("wb") as out:
                    shutil.copyfileobj(content, out, _COPY_BYTES)
            # Reading to the very end: only there does a gzip say whether it is whole.
            while archive.fileobj and archive.fileobj.read(_COPY_BYTES):
                continue
    except (EOFError, zlib.error) as error:
        raise SoftwareError(_truncated(tarball, error)) from error
    except (gzip.BadGzipFile, tarfile.ReadError) as error:
        if "unexpected end" in str(error):
            raise SoftwareError(_truncated(tarball, error)) from error
        raise SoftwareError(
            f"{tarball} is not a release tarball: not a gzip'ed tar archive ({error}); "
            "a release's is called kafka_2.13-4.3.1.tgz"
        ) from error
    jars = runnable(target.iterdir())
    if clients_jar(jars) is None:
        raise SoftwareError(
            f"{tarball} is not a Kafka: no kafka-clients-*.jar in its libs/ ({len(jars)} jars there, {others} other "
            "entries). The binary release is kafka_2.13-….tgz; one that ends in -src.tgz has to be built first"
        )
    return jars


def _truncated(tarball: Path, error: Exception) -> str:
    return (
        f"{tarball} is truncated or damaged ({error}; {tarball.stat().st_size:,} bytes): get it again, "
        "and compare it with the .sha512 beside the release"
    )


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
