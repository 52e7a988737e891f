"""All checks, in reading order."""

from collections.abc import Iterable, Mapping

from testbed.setup.check import Check
from testbed.setup.checks.engine import ContainerEngine
from testbed.setup.checks.machine import (
    Addresses,
    ControlGroups,
    Cpus,
    DiskSpace,
    KernelDelay,
    KernelFeatures,
    MemorySize,
    Permissions,
    Platform,
)
from testbed.setup.checks.packages import Packages, PythonEnvironment, PythonPackages
from testbed.setup.checks.software import Go, JavaRuntime, KafkaJars, MinioServer, NodeImage, QuickStart, SkewedClocks

OPTIONAL: Mapping[str, tuple[type[Check], ...]] = {
    "clock-skew": (SkewedClocks,),
    "minio": (Go, MinioServer),
}
"""Optional checks, by the doctor's name for them; not every command needs them."""


def all_checks(names: Iterable[str] = ()) -> tuple[Check, ...]:
    """Return the checks that every command needs, and the optional checks of these `names`."""
    return (
        Platform(),
        Permissions(),
        Cpus(),
        MemorySize(),
        DiskSpace(),
        PythonPackages(),
        PythonEnvironment(),
        Packages(),
        KernelFeatures(),
        KernelDelay(),
        ControlGroups(),
        Addresses(),
        ContainerEngine(),
        JavaRuntime(),
        NodeImage(),
        KafkaJars(),
        QuickStart(),
        *(check() for name in names for check in OPTIONAL[name]),
    )
