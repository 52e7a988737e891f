"""The errors that a user may meet. Each message names the problem, its place and the remedy."""


class TestbedError(Exception):
    """An error that the user can act on; printed without a traceback (exit code 70)."""

    __test__ = False  # the name starts with "Test": pytest must not collect it


class UsageError(TestbedError):
    """The command line, a parameter or a file is wrong (exit code 64, as in sysexits.h)."""


class SoftwareError(TestbedError):
    """A release, an image or an archive is not available; the message names it, the reason and the remedy."""
