"""The remote storage manager (KIP-405) of the brokers: the testbed's own, built by Maven, or a user's jars.

Both are copied into the cache under their digest, as a whole. Kafka hosts mount them at `TARGET`. The class of a
user's manager is found in the class files of its jars.
"""

import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import SoftwareError
from testbed.paths import cache_dir
from testbed.software.cache import artefact, digest_of, digests, existing, sha256_of
from testbed.software.maven import MavenProject

SOURCES = Path(__file__).parents[1] / "tiered" / "java"
PROJECT = MavenProject("the remote storage manager", SOURCES)
TARGET = "/opt/testbed/rsm"
OWN_CLASS = "testbed.tiered.S3RemoteStorageManager"
INTERFACE = "org.apache.kafka.server.log.remote.storage.RemoteStorageManager"
CLASS_PROPERTY = "remote.log.storage.manager.class.name"
_CLASS_FILE = "class-name"
_JARS = "jars"


@dataclass(frozen=True, slots=True)
class RemoteStorageManager:
    """A manager in the cache: its folder of jars, the class that brokers load, and a digest over both."""

    folder: Path
    class_name: str
    """Empty when the jars have no such class or several: then the topology's properties name it."""
    digest: str

    @property
    def is_own(self) -> bool:
        """Return whether it is the testbed's own."""
        return self.class_name == OWN_CLASS


def remote_storage_manager(folder: str | Path | None = None, digest: str = "") -> RemoteStorageManager:
    """Return the manager in `folder`; with None the testbed's own, built when its sources are new (half a minute).

    With a `digest` return the manager with this digest from the cache, as brokers that run have it: the folder, or the
    sources, may have another one by now. Raise SoftwareError when it cannot be built, when the folder has none, or when
    the cache has lost it.
    """
    if digest:
        return _cached(digest)
    if folder is None:
        return _at(artefact("rsm", f"own-{PROJECT.digest()[:16]}", _build))
    jars = _jars_in(Path(folder))
    key = digest_of((jar.name, sha256_of(jar)) for jar in jars)
    return _at(artefact("rsm", f"given-{key[:16]}", lambda made: _copy(jars, made)))


def cached_manager() -> RemoteStorageManager | None:
    """Return the testbed's own when it is in the cache and intact; build nothing."""
    made = existing("rsm", f"own-{PROJECT.digest()[:16]}")
    return None if made is None else _at(made)


def _cached(digest: str) -> RemoteStorageManager:
    """Return the manager with this digest from the cache. Raise SoftwareError when it is not there, or not intact."""
    for folder in sorted((cache_dir() / "rsm").glob("[a-z]*")):
        made = existing("rsm", folder.name)
        if made is not None and (found := _at(made)).digest == digest:
            return found
    raise SoftwareError(
        "the remote storage manager that the brokers began with is no longer in the cache: bring the testbed up again, "
        "or begin a new campaign"
    )


def _build(folder: Path) -> None:
    jars = folder / _JARS
    jars.mkdir()
    PROJECT.run(["package", "-Dmaven.test.skip=true", f"-Drsm.to={jars}"])
    _note(folder, OWN_CLASS)


def _copy(jars: Sequence[Path], folder: Path) -> None:
    (folder / _JARS).mkdir()
    for jar in jars:
        shutil.copyfile(jar, folder / _JARS / jar.name)
    found = implementers(sorted((folder / _JARS).iterdir()), INTERFACE)
    _note(folder, found[0] if len(found) == 1 else "")


def _note(folder: Path, class_name: str) -> None:
    (folder / _CLASS_FILE).write_text(class_name, encoding="utf-8")


def _at(folder: Path) -> RemoteStorageManager:
    known = digests(folder)
    name = (folder / _CLASS_FILE).read_text(encoding="utf-8")
    return RemoteStorageManager(folder / _JARS, name, digest_of(sorted(known.items())))


def _jars_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise SoftwareError(f"{folder} is no folder: remote_storage.manager is one with a RemoteStorageManager's jars")
    jars: dict[str, Path] = {}
    # A release has its jars in one folder or in several below it (a core's, a store's): brokers load them all.
    for jar in sorted(folder.rglob("*.jar")):
        jars.setdefault(jar.name, jar)
    if not jars:
        raise SoftwareError(f"{folder} has no jars; an unpacked release of a RemoteStorageManager has")
    return list(jars.values())


_MAGIC = 0xCAFEBABE
_INTERFACE, _ABSTRACT = 0x0200, 0x0400
_UTF8, _CLASS = 1, 7
# Bytes that follow the tag of each other kind of constant (The Java Virtual Machine Specification, 4.4).
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_TWO_PLACES = (5, 6)


def implementers(jars: Iterable[Path], interface: str) -> list[str]:
    """Return the sorted names of instantiable classes that declare that they implement `interface`.

    Raise SoftwareError when a jar cannot be read.
    """
    wanted = interface.replace(".", "/")
    return sorted({name for jar in jars for name in _in_jar(jar, wanted)})


def _in_jar(jar: Path, wanted: str) -> Iterator[str]:
    try:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if not entry.endswith(".class"):
                    continue
                content = archive.read(entry)
                if wanted.encode() in content and (found := implementer(content, wanted)):
                    yield found
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, struct.error, KeyError, IndexError) as error:
        raise SoftwareError(f"{jar}: not a jar that can be read ({error})") from error


def implementer(content: bytes, wanted: str) -> str:
    """Return the class's name if its file declares `wanted` (`a/b/C`) and it is instantiable; otherwise empty.

    Raise `struct.error`, KeyError or IndexError when the file is truncated or damaged.
    """
    magic, _minor, _major, count = struct.unpack_from(">IHHH", content)
    if magic != _MAGIC:
        return ""
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    at, number = 10, 1
    while number < count:
        tag = content[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", content, at + 1)
            texts[number] = content[at + 3 : at + 3 + length].decode("utf-8", errors="replace")
            at += 3 + length
        elif tag == _CLASS:
            (classes[number],) = struct.unpack_from(">H", content, at + 1)
            at += 3
        else:
            at += 1 + _SIZES[tag]
        number += 2 if tag in _TWO_PLACES else 1
    access, this, _super, interfaces = struct.unpack_from(">HHHH", content, at)
    named = struct.unpack_from(f">{interfaces}H", content, at + 8)
    if access & (_INTERFACE | _ABSTRACT) or wanted not in {texts[classes[each]] for each in named}:
        return ""
    return texts[classes[this]].replace("/", ".")
