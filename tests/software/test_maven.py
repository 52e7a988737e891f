from pathlib import Path
from xml.etree import ElementTree

import pytest

from testbed.software import maven
from testbed.software.commands import CommandError
from testbed.software.maven import Coordinates, NotInRegistry, missing_artifacts, pom

SAID = (
    "[ERROR] Failed to execute goal on project jars: Could not resolve dependencies for "
    "project testbed:jars:jar:1: The following artifacts could not be resolved: "
    "org.apache.kafka:kafka_2.13:jar:4.9.9: "
    "Could not find artifact org.apache.kafka:kafka_2.13:jar:4.9.9 in central (some mirror) -> [Help 1]"
)


def test_the_project_file_asks_for_what_is_wanted() -> None:
    text = pom([Coordinates("g", "a<b", "1"), Coordinates("g", "agent", "2", "javaagent")])
    space = "{http://maven.apache.org/POM/4.0.0}"
    found = [[part.text for part in node] for node in ElementTree.fromstring(text).iter(f"{space}dependency")]
    assert found == [["g", "a<b", "1"], ["g", "agent", "2", "javaagent"]]


def test_what_maven_misses_is_read_from_its_words() -> None:
    assert missing_artifacts(SAID) == ("org.apache.kafka:kafka_2.13:4.9.9",)


def test_what_maven_remembers_to_miss_is_read_too() -> None:
    said = "org.apache.kafka:kafka_2.13:jar:4.9.9 was not found in some mirror during a previous attempt."
    assert missing_artifacts(said) == ("org.apache.kafka:kafka_2.13:4.9.9",)


def test_a_network_failure_is_not_taken_for_a_missing_artifact() -> None:
    assert missing_artifacts("[ERROR] Could not transfer artifact org.apache.kafka:kafka_2.13:pom:4.3.1") == ()


def test_versions_are_read_although_maven_fails_and_a_download_was_interrupted(tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / ".m2" / "repository" / "g" / "name"
    folder.mkdir(parents=True)
    (folder / "maven-metadata-a.xml").write_text("<metadata><versioning><versions><version>1</ver")
    (folder / "maven-metadata-b.xml").write_text("<m><version>1</version><version>2</version></m>")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(maven, "run_logged", fail)
    assert maven.known_versions("g", "name") == ("1", "2")


def test_what_maven_does_not_find_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(maven, "run_logged", fail)
    with pytest.raises(NotInRegistry, match=r"^Maven finds no org\.apache\.kafka:kafka_2\.13:4\.9\.9$"):
        maven.run_maven(tmp_path / "pom.xml", ["package"], purpose="builds")


def fail(words, log, **_rest) -> None:
    assert words[:6] == ["mvn", "-B", "-q", "-Dstyle.color=never", "-f", words[5]]
    raise CommandError("mvn: exit code 1", log, SAID)
