"""All checks, in the order a person reads them."""

from collections.abc import Iterable, Mapping

from testbed.setup.checks.capacity import Disk, Memory
from testbed.setup.checks.engine import ContainerEngine
from testbed.setup.checks.environment import PythonEnvironment
from testbed.setup.checks.kernel import Kernel, KernelDelay
from testbed.setup.checks.minio import Go, MinioServer
from testbed.setup.checks.packages import Packages, PythonPackages
from testbed.setup.checks.permissions import Permissions
from testbed.setup.checks.platform import Platform
from testbed.setup.checks.software import JavaRuntime, KafkaJars, NodeImage, QuickStart
from testbed.setup.finding import Check

OPTIONAL: Mapping[str, tuple[type[Check], ...]] = {"minio": (Go, MinioServer)}
"""What not every command needs, by the name with which the doctor is asked for it."""


def all_checks(names: Iterable[str] = ()) -> tuple[Check, ...]:
    """One of each that every command needs, and those of these optional `names`."""
    return (
        Platform(),
        Permissions(),
        Memory(),
        Disk(),
        PythonPackages(),
        PythonEnvironment(),
        Packages(),
        Kernel(),
        KernelDelay(),
        ContainerEngine(),
        JavaRuntime(),
        NodeImage(),
        KafkaJars(),
        QuickStart(),
        *(check() for name in names for check in OPTIONAL[name]),
    )
