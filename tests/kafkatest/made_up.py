"""A small made-up checkout: what `read_checkout` needs, and two test files. Nothing of Kafka's own is in it."""

from pathlib import Path

from testbed.kafkatest.selection import SystemTest

SETUP = """\
from setuptools import setup
import a_module_that_no_environment_has

setup(name="kafkatest", install_requires=["ducktape==0.12.0", "requests==2.31.0", "psutil==5.7.2"], zip_safe=False)
"""
MOVING = """\
from ducktape.mark import matrix
from ducktape.mark.resource import cluster
from ducktape.tests.test import Test


class MovingTest(Test):
    @cluster(num_nodes=3)
    @matrix(bounce=[True, False], from_version=["3.9.1", "dev"])
    def test_move(self, bounce, from_version):
        pass
"""
ALONE = """\
from ducktape.mark.resource import cluster
from ducktape.tests.test import Test


class AloneTest(Test):
    @cluster(num_nodes=1)
    def test_alone(self):
        pass
"""


def make_checkout(folder: Path, version: str = "9.9.9") -> Path:
    """Write the checkout and return its folder."""
    files = {
        "gradle.properties": f"group=org.example\nversion={version}\nscalaVersion=2.13.14\n",
        "bin/kafka-run-class.sh": "#!/bin/sh\nexit 0\n",
        "config/server.properties": "a=b\n",
        "tests/setup.py": SETUP,
        "tests/kafkatest/__init__.py": "__version__ = '9.9.9'\n",
        "tests/kafkatest/tests/__init__.py": "",
        "tests/kafkatest/tests/core/__init__.py": "",
        "tests/kafkatest/tests/core/moving_test.py": MOVING,
        "tests/kafkatest/tests/core/alone_test.py": ALONE,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "bin" / "kafka-run-class.sh").chmod(0o755)
    return folder


def system_test(nodes=3, name="test_move", **arguments):
    """Return one test of the made-up checkout."""
    file = Path("/checkout/tests/kafkatest/tests/core/moving_test.py")
    return SystemTest(f"moving_test.MovingTest.{name}.{arguments}", file, "MovingTest", name, arguments, nodes)
