"""The errors a user may meet. Each message says what was wrong, where, and what to do about it."""


class TestbedError(Exception):
    """Something the user can act on; printed without a traceback (exit code 70)."""

    __test__ = False  # the name starts with "Test": pytest must not take it for one


class UsageError(TestbedError):
    """The command line, a parameter or a file is wrong (exit code 64, as in sysexits.h)."""


class SoftwareError(TestbedError):
    """A release, an image or an archive could not be had; the message says which, why, and what to do."""
