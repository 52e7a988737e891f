"""`[NAME] HOST` on a command line; the user may omit the testbed when exactly one is up."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from testbed.errors import UsageError
from testbed.hosts import SshHost

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed


def pick_host(words: Sequence[str]) -> SshHost:
    """Return the host that `words` name. Raise `UsageError`, with the existing names, when there is none."""
    testbed, host = pick(words)
    return testbed.hosts[host]


def pick_testbed(name: str | None) -> "Testbed":
    """Return the testbed of that name, or without a name the only one that is up. Raise `UsageError` otherwise."""
    from testbed.provision.state import names
    from testbed.provision.testbed import Testbed

    up = names()
    if name is None and len(up) != 1:
        raise UsageError(f"say which testbed; up are {', '.join(up) or 'none'}")
    return Testbed.attach(up[0] if name is None else name)


def pick(words: Sequence[str]) -> tuple["Testbed", str]:
    """Return the testbed and the host's name that `words` name.

    Raise `UsageError`, with the existing names, when there is none.
    """
    from testbed.provision.state import names
    from testbed.provision.testbed import Testbed

    up = names()
    if len(words) == 1:
        if len(up) != 1:
            raise UsageError(f"say which testbed: NAME HOST; up are {', '.join(up) or 'none'}")
        name, host = up[0], words[0]
    elif len(words) == 2:
        name, host = words
    else:
        raise UsageError(f"expected [NAME] HOST, found {' '.join(words)!r}")
    testbed = Testbed.attach(name)
    if host not in testbed.hosts:
        raise UsageError(f"{name} has no host {host!r}; it has {', '.join(testbed.hosts)}")
    return testbed, host
