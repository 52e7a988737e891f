"""Errors of this package."""

from testbed.errors import TestbedError


class SoftwareError(TestbedError):
    """A release, an image or an archive could not be had; the message says which, why, and what to do."""
