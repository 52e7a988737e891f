"""A fake AutoMQ, which says so in its version: Apache Kafka's jars, and two of its own.

One is named as the jar by which AutoMQ is known. The other has a `kafka.Kafka` that comes first on the class path and
formats its folder by `cluster.id`, as AutoMQ does; then it is the Kafka it is made of. Nothing of it is in an object
store, and it says nothing of any step. So it covers how a distribution is found, checked, configured and started, and
proves nothing about AutoMQ.
"""

import shutil
import subprocess
import zipfile
from pathlib import Path

from testbed.software.kafka import kafka_release

VERSION = "0.0.0-fake"
NAME = f"automq-{VERSION}_kafka"
MARKER = f"s3stream-{VERSION}.jar"
# Before `kafka_…` in the order of the class path.
START = f"automq-start-{VERSION}.jar"

_MAIN = """\
package kafka;

import java.io.FileInputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

public final class Kafka {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream file = new FileInputStream(args[0])) {
            properties.load(file);
        }
        for (String name : new String[] {"KAFKA_S3_ACCESS_KEY", "KAFKA_S3_SECRET_KEY"}) {
            if (System.getenv(name) == null || System.getenv(name).isEmpty()) {
                System.err.println("fake: no " + name + " in the environment");
                System.exit(3);
            }
        }
        String cluster = properties.getProperty("cluster.id");
        Path folder = Path.of(properties.getProperty("log.dirs"));
        if (cluster != null && !Files.exists(folder.resolve("meta.properties"))) {
            Files.createDirectories(folder);
            Class.forName("kafka.tools.StorageTool")
                .getMethod("execute", String[].class, PrintStream.class)
                .invoke(null, new String[] {"format", "-t", cluster, "-c", args[0]}, System.out);
        }
        Class<?> kafka = Class.forName("kafka.Kafka$");
        kafka.getMethod("main", String[].class).invoke(kafka.getField("MODULE$").get(null), (Object) args);
    }
}
"""


def fake_automq(folder: Path) -> Path:
    """A fake distribution, unpacked into `folder`; returns its top folder."""
    release = kafka_release()
    top = folder / f"{NAME}-{release.version}"
    libs = top / "libs"
    libs.mkdir(parents=True)
    for jar in release.jars:
        shutil.copyfile(release.libs / jar, libs / jar)
    marker(libs)
    for name in ("bin", "config"):
        (top / name).mkdir()
    (top / "README").write_text("A fake for tests: no AutoMQ.\n", encoding="utf-8")
    classes = folder / "classes"
    source = folder / "Kafka.java"
    source.write_text(_MAIN, encoding="utf-8")
    subprocess.run(["javac", "--release", "17", "-d", classes, source], check=True, capture_output=True, timeout=120)
    _jar(libs / START, "kafka/Kafka.class", (classes / "kafka" / "Kafka.class").read_bytes())
    return top


def marker(libs: Path) -> None:
    """The jar by which AutoMQ is known, with nothing in it."""
    _jar(libs / MARKER, "FAKE", b"A fake for tests: no AutoMQ.\n")


def _jar(path: Path, name: str, content: bytes) -> None:
    """The same bytes each time: the cache has one fake, not one for each run of the tests."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
