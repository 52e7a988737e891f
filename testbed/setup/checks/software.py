"""What brokers run on: Java, the node image, Kafka's jars, the class-data archive."""

from testbed.setup.finding import CannotFix, Check, Finding
from testbed.software.cds import cached_archive, cds_archive
from testbed.software.engine import Engine, EngineError
from testbed.software.format import bootstrap_checkpoint, cached_checkpoint
from testbed.software.image import local_image, node_image
from testbed.software.java import MINIMUM, find_java
from testbed.software.kafka import DEFAULT_KAFKA, cached_release, kafka_release


class JavaRuntime(Check):
    """Spark and Kafka's tools run on it."""

    name = "java"
    needs = ("packages",)

    def probe(self) -> Finding:
        """Look for one that is new enough."""
        java = find_java()
        if java is not None:
            return self.good(f"Java {java.major} in {java.home}")
        return self.bad(f"no Java {MINIMUM} or newer", "apt-get install openjdk-17-jre-headless")


class NodeImage(Check):
    """The image of every host's container."""

    name = "node image"
    needs = ("packages", "container engine", "disk")
    fixable = True
    doing = "making the node image"
    estimate_s = 40.0

    def probe(self) -> Finding:
        """Whether the engine has it."""
        try:
            image = local_image(Engine.from_environment())
        except EngineError as error:
            return self.bad(f"cannot be looked for: {error}")
        return self.good(image.tag) if image else self.bad("the engine does not have it yet")

    def fix(self) -> None:
        """Pull or build it."""
        node_image()


class KafkaJars(Check):
    """The default release."""

    name = "kafka jars"
    needs = ("packages", "disk")
    fixable = True
    doing = f"fetching Kafka {DEFAULT_KAFKA}"
    estimate_s = 15.0

    def probe(self) -> Finding:
        """Whether they are cached, each with the right digest."""
        release = cached_release()
        if release is None:
            return self.bad(f"Kafka {DEFAULT_KAFKA} is not in the cache, or damaged there")
        return self.good(f"Kafka {DEFAULT_KAFKA}, {len(release.jars)} jars, verified")

    def fix(self) -> None:
        """Fetch them through Maven."""
        kafka_release()


class QuickStart(Check):
    """What makes brokers start in seconds: the class-data archive and the checkpoint of a fresh cluster."""

    name = "class-data archive"
    needs = ("kafka jars", "node image", "java")
    fixable = True
    doing = "preparing fast broker starts"
    estimate_s = 10.0

    def probe(self) -> Finding:
        """Whether both are cached for this release and image."""
        release = cached_release()
        try:
            image = local_image(Engine.from_environment())
        except EngineError as error:
            return self.bad(f"cannot be looked for: {error}")
        if release is None or image is None:
            return self.bad("not made yet")
        if cached_archive(release, image) is None or cached_checkpoint(release) is None:
            return self.bad(f"not made yet for Kafka {release.version} in {image.tag}")
        return self.good(f"for Kafka {release.version} in {image.tag}")

    def fix(self) -> None:
        """Make both."""
        release = cached_release()
        image = local_image(Engine.from_environment())
        if release is None or image is None:
            raise CannotFix("the jars or the image are gone again")
        bootstrap_checkpoint(release)
        cds_archive(release, image)
