"""The errors that a user may meet. Each message names the problem, its place and the remedy."""


class TestbedError(Exception):
    """An error that the user can act on; printed without a traceback."""

    __test__ = False  # the name starts with "Test": pytest must not collect it
    exit_code = 70
    """EX_SOFTWARE of sysexits.h: 1 and 2 are verdicts."""


class UsageError(TestbedError):
    """The command line, a parameter or a file is wrong."""

    exit_code = 64
    """EX_USAGE of sysexits.h."""


class KafkaStuck(TestbedError):
    """Kafka does not start, or keeps a run from its end; neither the machine nor the testbed explains it."""


class SoftwareError(TestbedError):
    """A release, an image or an archive is not available; the message names it, the reason and the remedy."""
