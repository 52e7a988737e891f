from xml.etree import ElementTree

from testbed.software.maven import Coordinates, missing_artifacts, pom

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
