"""AutoMQ from the user: an unpacked release, its tarball or an image, copied into the cache as a Kafka.

No package registry has it. The topology or TESTBED_AUTOMQ names it.
"""

import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import SoftwareError
from testbed.software.cache import sha256_of
from testbed.software.engine import EngineError, EngineSocket, have_image
from testbed.software.jvm import MAIN_CLASS
from testbed.software.kafka import COPY_BYTES, NotARelease, jars_of_tar, laid, once, unpack
from testbed.software.release import S3_STREAM, KafkaRelease, clients_jar, runnable, version_in
from testbed.software.source import AUTOMQ, is_path

VARIABLE = "TESTBED_AUTOMQ"
SUPPLY = (
    "Supply one: the tarball of a release (automq-VERSION_kafka-VERSION.tgz, from the releases of the AutoMQ project), "
    "the folder it unpacks to (it has libs/, bin/ and config/), or an image of it that the container engine has. "
    f"Name it in the topology (`software: {{automq: {{path: …}}}}` or `{{image: …}}`) or in {VARIABLE}"
)
_NAMED = re.compile(r"automq-(?:kafka-)?(\d[A-Za-z0-9.-]*?)(?:_kafka-.*)?(?:\.tgz|\.tar\.gz)?")
_TAGGED = re.compile(r".*:(\d[A-Za-z0-9._-]*)")
_STREAM_VERSION = re.compile(rf"{S3_STREAM}(\d[A-Za-z0-9.-]*)\.jar")


class NoDistribution(SoftwareError):
    """No AutoMQ was supplied."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """The place of an AutoMQ: a path (of a folder or a tarball) or an image, and the setting that names it."""

    path: Path | None = None
    image: str | None = None
    by: str = "the topology"

    def __str__(self) -> str:
        return str(self.path) if self.path is not None else f"image {self.image}"


def supplied(path: str | None, image: str | None, environment: Mapping[str, str] = os.environ) -> Supplied:
    """Return the distribution of the topology, or of the environment. Raise `NoDistribution` when neither names one.

    A value of the environment is a path if it is written as one or exists as one; otherwise it is an image.
    """
    if path is not None:
        return Supplied(path=Path(path).expanduser().absolute())
    if image is not None:
        return Supplied(image=image)
    text = environment.get(VARIABLE, "").strip()
    if not text:
        raise NoDistribution(f"there is no AutoMQ: the topology names none, and {VARIABLE} is not set. {SUPPLY}.")
    try:
        there = Path(text).expanduser().absolute()
    except RuntimeError as error:  # ~USER of a user that does not exist
        raise NoDistribution(f"{VARIABLE}={text}: {error} {SUPPLY}.") from error
    # An image may have a slash in its name; a path that a person wrote has no colon.
    if there.exists() or text.startswith(("/", "~", ".")) or (is_path(text) and ":" not in text):
        return Supplied(path=there, by=VARIABLE)
    return Supplied(image=text, by=VARIABLE)


def lasting_variable(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variable as a command in another folder has to have it: a path is absolute. Empty without a path."""
    try:
        where = supplied(None, None, environment)
    except NoDistribution:
        return {}
    return {} if where.path is None else {VARIABLE: str(where.path)}


def automq_release(where: Supplied, engine: EngineSocket | None = None) -> KafkaRelease:
    """Return the distribution in the cache, checked and with its digest; copy it as a whole when new.

    Its version is `automq-1.6.0+0123456789ab`: AutoMQ's own number as far as it is known, and digits of its jars.
    Raise SoftwareError with the problem and the remedy.
    """
    try:
        if where.path is None:
            return _of_image(where, engine or EngineSocket.from_environment())
        if where.path.is_dir():
            return _laid(runnable((_top(where.path) / "libs").glob("*.jar")), where, where.path.name)
        if where.path.is_file():
            return _of_tarball(where, where.path)
    except OSError as error:
        why = f"{error.strerror or error} ({error.filename or 'no name'})"
        raise SoftwareError(f"{where}, named by {where.by}, cannot be copied into the cache: {why}") from error
    raise SoftwareError(f"there is no AutoMQ at {where}, named by {where.by}: no such file or folder. {SUPPLY}.")


def _top(folder: Path) -> Path:
    """Return the release's own folder: the named folder, or the only folder in it with libs/."""
    if (folder / "libs").is_dir():
        return folder
    inside = sorted(path for path in folder.iterdir() if (path / "libs").is_dir())
    return inside[0] if len(inside) == 1 else folder


def _of_tarball(where: Supplied, tarball: Path) -> KafkaRelease:
    def make(folder: Path) -> KafkaRelease:
        try:
            jars = unpack(tarball, folder)
        except NotARelease as error:
            raise SoftwareError(_refusal(where, error.why)) from error
        return _laid(jars, where, tarball.name)

    return once("automq-tarballs", sha256_of(tarball)[:16], make)


def _of_image(where: Supplied, engine: EngineSocket) -> KafkaRelease:
    name = str(where.image)
    try:
        identity = have_image(engine, name)
    except EngineError as error:
        raise SoftwareError(
            f"{where}, named by {where.by}: the container engine does not have it and cannot get it ({error}); "
            f"`docker load` puts in one that was saved to a file. {SUPPLY}."
        ) from error

    def make(folder: Path) -> KafkaRelease:
        with engine.files_of_image(identity) as files:
            jars = jars_in(files, folder)
        return _laid(jars, where, name)

    return once("automq-images", identity.removeprefix("sha256:")[:16], make)


def jars_in(files: object, target: Path) -> list[Path]:
    """Extract the jars of AutoMQ's folder `libs` from the tar of a whole file system (a stream) into `target`."""
    folders: dict[str, Path] = {}
    with tarfile.open(fileobj=files, mode="r|*") as archive:  # type: ignore[call-overload]
        for place, jar, content in jars_of_tar(archive):
            into = folders.setdefault(place, target / str(len(folders)))
            into.mkdir(parents=True, exist_ok=True)
            with (into / jar).open("wb") as out:
                shutil.copyfileobj(content, out, COPY_BYTES)
    for folder in folders.values():
        if any(folder.glob(f"{S3_STREAM}*.jar")):
            return runnable(folder.iterdir())
    return runnable(next(iter(folders.values()), target).glob("*.jar"))


def _laid(jars: Sequence[Path], where: Supplied, name: str) -> KafkaRelease:
    wrong = problem(jars)
    if wrong:
        raise SoftwareError(_refusal(where, wrong))
    return laid(jars, f"{AUTOMQ}{version_of(jars, name)}")


def _refusal(where: Supplied, why: str) -> str:
    return f"{where}, named by {where.by}, is not an AutoMQ: {why}. {SUPPLY}."


def problem(jars: Sequence[Path]) -> str:
    """Return why these jars are no runnable AutoMQ; empty when they are."""
    if not jars:
        return "no jars in a folder libs/"
    if clients_jar(jars) is None:
        return f"no kafka-clients-*.jar among its {len(jars)} jars"
    if not any(jar.name.startswith(S3_STREAM) for jar in jars):
        return f"no {S3_STREAM}*.jar among its {len(jars)} jars, by which AutoMQ is known; it is a Kafka without it"
    try:
        version_in(jars)
        mains = [jar.name for jar in jars if _has_main(jar)]
    except SoftwareError as error:
        return str(error)
    return "" if mains else f"no jar of its core has the class {MAIN_CLASS}"


def _has_main(jar: Path) -> bool:
    if not jar.name.startswith("kafka_"):
        return False
    try:
        with zipfile.ZipFile(jar) as archive:
            return f"{MAIN_CLASS.replace('.', '/')}.class" in archive.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise SoftwareError(f"{jar.name} cannot be read ({error})") from error


def version_of(jars: Sequence[Path], name: str) -> str:
    """Return AutoMQ's own number: of its stream library, or else of the name of its tarball, folder or tag.

    Its jars carry Kafka's version; only the name of its tarball, folder or tag has a release's number. Without one, the
    number is the Kafka version of its jars.
    """
    kafka = version_in(jars)
    own = next((found[1] for jar in jars if (found := _STREAM_VERSION.fullmatch(jar.name))), kafka)
    if own != kafka:
        return own
    last = name.rpartition("/")[2]
    named = _NAMED.fullmatch(last) or _TAGGED.fullmatch(last)
    return named[1] if named else f"kafka-{kafka}"
