"""The shell on a host, without a host. tests/containers/test_shell.py has it on real ones."""

from types import SimpleNamespace

import pytest

from testbed.cli.terminal import _begin
from testbed.hosts.relocation import PathRelocation


@pytest.mark.parametrize(
    ("relocation", "begun"),
    [
        (None, ["login shell"]),
        (PathRelocation("/srv/testbed-lab-1", "m", sudo=False), ["login shell"]),
        (PathRelocation("/srv/testbed-lab-1", "m", sudo=True), ["sudo -n -i"]),
    ],
    ids=("container", "root", "user with sudo"),
)
def test_the_shell_is_roots_on_every_host(relocation, begun):
    found = []
    channel = SimpleNamespace(invoke_shell=lambda: found.append("login shell"), exec_command=found.append)
    _begin(SimpleNamespace(relocation=relocation), channel)
    assert found == begun
