"""All checks, in the order a person reads them."""

from testbed.setup.checks.capacity import Disk, Memory
from testbed.setup.checks.engine import ContainerEngine
from testbed.setup.checks.environment import PythonEnvironment
from testbed.setup.checks.kernel import Kernel, KernelDelay
from testbed.setup.checks.packages import Packages, PythonPackages
from testbed.setup.checks.permissions import Permissions
from testbed.setup.checks.platform import Platform
from testbed.setup.checks.software import JavaRuntime, KafkaJars, NodeImage, QuickStart
from testbed.setup.finding import Check


def all_checks() -> tuple[Check, ...]:
    """One of each."""
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
    )
