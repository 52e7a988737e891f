"""Shared by all tests."""

import pytest
from hypothesis import HealthCheck, settings

# Tests run side by side, and the machine may have other work: how long one example takes is nobody's subject.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

AT_ONCE = 2
"""Files of tests with containers that run at the same time: a machine with two cores carries two testbeds."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Group the tests by file for pytest-xdist, and those with containers into `AT_ONCE` groups of files.

    First, because pytest-xdist reads the groups in the same hook.
    """
    with_containers = list(dict.fromkeys(item.path for item in items if item.get_closest_marker("containers")))
    for item in items:
        if item.get_closest_marker("containers"):
            group = f"containers-{with_containers.index(item.path) % AT_ONCE}"
        else:
            group = str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
