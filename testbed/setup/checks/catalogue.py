"""All checks, in the order a person reads them."""

from collections.abc import Iterable, Mapping

from testbed.setup.check import Check
from testbed.setup.checks.engine import ContainerEngine
from testbed.setup.checks.machine import DiskSpace, KernelDelay, KernelFeatures, MemorySize, Permissions, Platform
from testbed.setup.checks.packages import Packages, PythonEnvironment, PythonPackages
from testbed.setup.checks.software import Go, JavaRuntime, KafkaJars, MinioServer, NodeImage, QuickStart

OPTIONAL: Mapping[str, tuple[type[Check], ...]] = {"minio": (Go, MinioServer)}
"""What not every command needs, by the name with which the doctor is asked for it."""


def all_checks(names: Iterable[str] = ()) -> tuple[Check, ...]:
    """Return one of each that every command needs, and those of these optional `names`."""
    return (
        Platform(),
        Permissions(),
        MemorySize(),
        DiskSpace(),
        PythonPackages(),
        PythonEnvironment(),
        Packages(),
        KernelFeatures(),
        KernelDelay(),
        ContainerEngine(),
        JavaRuntime(),
        NodeImage(),
        KafkaJars(),
        QuickStart(),
        *(check() for name in names for check in OPTIONAL[name]),
    )
