"""The errors that a user may meet. Each message names the problem, its place and the remedy."""

import errno


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


def reason(error: Exception) -> str:
    """Return the text of an error about a file; that of a KeyError is the key alone."""
    return f"there is no field {error}" if isinstance(error, KeyError) else str(error)


_FULL = "free space on that disk and try again"
_NOT_YOURS = (
    "it belongs to another user, such as root after a command with sudo: run this as that user, or change its owner"
)
_ELSEWHERE = "name folders on another file system in XDG_CACHE_HOME, XDG_STATE_HOME and XDG_DATA_HOME"
_NO_LOCKS = f"its file system cannot lock files: {_ELSEWHERE}"
_REMEDIES = {errno.ENOSPC: _FULL, errno.EDQUOT: _FULL}
_OF_FILES = {
    errno.EACCES: _NOT_YOURS,
    errno.EPERM: _NOT_YOURS,
    errno.EROFS: _ELSEWHERE,
    errno.ENOLCK: _NO_LOCKS,
    errno.ENOSYS: _NO_LOCKS,
    errno.EOPNOTSUPP: _NO_LOCKS,
}


def os_error_text(error: OSError) -> str | None:
    """Return the problem, its place and the remedy of an error that the user can act on; None for any other."""
    remedies = {**_REMEDIES, **_OF_FILES} if error.filename else _REMEDIES
    remedy = remedies.get(error.errno or 0)
    where = f" ({error.filename})" if error.filename else ""
    return None if remedy is None else f"{error.strerror}{where}; {remedy}"
