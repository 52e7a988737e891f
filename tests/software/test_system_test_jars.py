"""The modules and the image of the system tests' hosts."""

import pytest

from testbed.errors import SoftwareError
from testbed.software.image import NODE, PACKAGES, build_command
from testbed.software.system_tests import RECIPE, modules_of, numbers_of, system_test_jars


def test_a_release_has_the_modules_of_its_time():
    assert [each.name for each in modules_of("3.9.1")][:3] == ["kafka_2.13", "kafka-tools", "trogdor"]
    assert "trogdor" not in [each.name for each in modules_of("2.8.2")]
    assert {each.version for each in modules_of("4.0.0")} == {"4.0.0"}
    assert numbers_of("3.9.0-rc1") == (3, 9, 0)


def test_a_release_without_a_core_for_this_scala_is_refused_before_maven_is_asked():
    with pytest.raises(SoftwareError, match="Kafka 0.10.2 has no jars for Scala 2.13; allowed: 2.4.0 or newer"):
        system_test_jars("0.10.2")


def test_the_image_has_a_jdk_and_a_user_and_the_node_image_is_as_it_was(tmp_path):
    assert {"openjdk-17-jdk-headless", "sudo", "rsync", "iptables"} <= set(RECIPE.packages)
    assert set(PACKAGES) - set(RECIPE.packages) == {"openjdk-17-jre-headless"}
    assert RECIPE.digest != NODE.digest
    command = build_command(tmp_path, (), RECIPE)
    assert any("useradd" in word for word in command)
    assert not any("useradd" in word for word in build_command(tmp_path, (), NODE))
