"""Checks of the brokers' software: Java, node image, Kafka's jars, class-data archive, MinIO, clock-skew's library."""

import os
import re
import subprocess

from testbed.setup.check import FIX_ALL, CannotFix, Check, CheckFinding
from testbed.setup.install import install
from testbed.software.commands import OLDEST_JAVA, find_java
from testbed.software.distribution import this_distribution, which
from testbed.software.engine import EngineError, EngineSocket, facts, kernel_name
from testbed.software.faketime import cached_library, library
from testbed.software.format import bootstrap_checkpoint, cached_checkpoint
from testbed.software.image import SUITE, image_origin, local_image, node_image
from testbed.software.jvm import cached_archive, cds_archive
from testbed.software.kafka import DEFAULT_KAFKA, cached_release, kafka_release
from testbed.software.minio import BUILD_S, GO, cached_minio, go_version, minio


class JavaRuntime(Check):
    """Java, which runs Spark and Kafka's tools."""

    name = "java"
    needs = ("packages",)

    def probe(self) -> CheckFinding:
        """Search for a Java that is new enough; return the finding."""
        java = find_java()
        if java is not None:
            return self.good(f"Java {java.major} in {java.home}")
        return self.bad(f"no Java {OLDEST_JAVA} or newer", this_distribution().how_to_get("java"))


class NodeImage(Check):
    """The image of every host's container."""

    name = "node image"
    needs = ("packages", "container engine", "disk")
    doing = "making the node image"
    estimate_s = 80.0

    def probe(self) -> CheckFinding:
        """Return whether the engine has the image, for its own architecture."""
        engine = EngineSocket.from_environment()
        try:
            image = local_image(engine)
            if image is None:
                return self.bad("the engine does not have it yet")
            own, origin = facts(engine.get("/version"), engine.get("/info")).architecture, image_origin(engine, image)
            built_for = engine.image_architecture(image.tag)
        except EngineError as error:
            return self.bad(f"cannot be looked for: {error}")
        if kernel_name(built_for) != own:
            return self.bad(
                f"{image.tag} is for {built_for}, the engine runs on {own}",
                f"docker rmi {image.tag}, and the command that needs it again",
            )
        return self.good(f"{image.tag}, made from {origin}")

    def fix(self) -> None:
        """Pull or build the image."""
        node_image()


class KafkaJars(Check):
    """The jars of the default release."""

    name = "kafka jars"
    needs = ("packages", "disk")
    doing = f"fetching Kafka {DEFAULT_KAFKA}"
    estimate_s = 15.0

    def probe(self) -> CheckFinding:
        """Return whether the jars are cached, each with the right digest."""
        release = cached_release()
        if release is None:
            return self.bad(f"Kafka {DEFAULT_KAFKA} is not in the cache, or damaged there")
        return self.good(f"Kafka {DEFAULT_KAFKA}, {len(release.jars)} jars, verified")

    def fix(self) -> None:
        """Fetch the jars through Maven."""
        kafka_release()


class QuickStart(Check):
    """The artefacts for a start in seconds: the class-data archive and the checkpoint of a fresh cluster."""

    name = "class-data archive"
    needs = ("kafka jars", "node image", "java")
    doing = "preparing fast broker starts"
    estimate_s = 10.0

    def probe(self) -> CheckFinding:
        """Return whether both are cached for this release and image."""
        release = cached_release()
        try:
            image = local_image(EngineSocket.from_environment())
        except EngineError as error:
            return self.bad(f"cannot be looked for: {error}")
        if release is None or image is None:
            return self.bad("not made yet")
        if cached_archive(release, image) is None or cached_checkpoint(release) is None:
            return self.bad(f"not made yet for Kafka {release.version} in {image.tag}")
        return self.good(f"for Kafka {release.version} in {image.tag}")

    def fix(self) -> None:
        """Make both."""
        release = kafka_release()
        bootstrap_checkpoint(release)
        # The image of `probe`: `node_image` would ask the registry of a configured image once more.
        cds_archive(release, local_image(EngineSocket.from_environment()) or node_image())


GO_PACKAGE = "golang-go"
_GO_NEEDED = ".".join(map(str, GO))


class Go(Check):
    """Go, which builds the object store's server where no registry has its image."""

    name = "go"
    needs = ("packages",)
    doing = "installing Go"
    estimate_s = 30.0

    def probe(self) -> CheckFinding:
        """Return whether Go is new enough; with a cached binary Go is not needed."""
        found = go_version()
        if found is not None and found >= GO:
            return self.good(f"Go {'.'.join(map(str, found))}")
        if cached_minio() is not None:
            return self.good("not needed: the server is built")
        what = "no Go" if found is None else f"Go {'.'.join(map(str, found))} is too old"
        return self.bad(f"{what}; {_GO_NEEDED} or newer builds the object store's server", required=False)

    def fix(self) -> None:
        """Install the distribution's Go, if it is new enough."""
        offered = _offered_go()
        if offered is None or offered < GO:
            there = "has none" if offered is None else f"has {'.'.join(map(str, offered))}"
            raise CannotFix(
                f"the distribution {there}: install Go {_GO_NEEDED} or newer by hand, so that `go` is on PATH"
            )
        install(this_distribution().packages(["go"]))


class MinioServer(Check):
    """The binary of the object store's server."""

    name = "object store"
    needs = ("go", "container engine", "disk")
    doing = "building the object store's server"
    estimate_s = BUILD_S

    def probe(self) -> CheckFinding:
        """Return whether the binary is cached."""
        found = cached_minio()
        if found is None:
            return self.bad("its server, MinIO, is not built yet", f"{FIX_ALL} --with minio")
        return self.good(f"MinIO {found.version}")

    def fix(self) -> None:
        """Copy the binary from its image, or build it."""
        minio()


class SkewedClocks(Check):
    """The library of the fault `clock-skew`."""

    name = "clock-skew"
    needs = ("packages", "container engine", "disk")
    doing = "fetching the library of clock-skew"
    estimate_s = 20.0

    def probe(self) -> CheckFinding:
        """Return whether the library is cached."""
        found = cached_library()
        if found is None:
            return self.bad("its library is not fetched yet; its first use fetches it", f"{FIX_ALL} --with clock-skew")
        return self.good(f"{found.name} of Debian {SUITE}")

    def fix(self) -> None:
        """Fetch the library."""
        library()


def _offered_go() -> tuple[int, ...] | None:
    """Return the version of Go in the distribution's package; other distributions than Debian's kin have new ones."""
    manager = this_distribution().manager
    if manager is None:
        return None
    if manager.name != "apt":
        return GO
    policy = which("apt-cache") or "apt-cache"
    english = {**os.environ, "LC_ALL": "C"}
    said = subprocess.run(
        [policy, "policy", GO_PACKAGE], capture_output=True, text=True, check=False, env=english
    ).stdout
    return parse_offered_go(said)


def parse_offered_go(policy: str) -> tuple[int, ...] | None:
    """Return (1, 24) for the output of `apt-cache policy golang-go` with `Candidate: 2:1.24~2`."""
    found = re.search(r"Candidate: (?:\d+:)?(\d+)\.(\d+)", policy)
    return (int(found[1]), int(found[2])) if found else None
