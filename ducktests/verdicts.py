"""Exceptions for verdicts other than pass: ducktape knows only failed tests, and an exception's name is the verdict."""


class Failed(AssertionError):
    """The verdict is fail."""


class Inconclusive(AssertionError):
    """The verdict is inconclusive. ducktape has no such result and counts the test as failed."""
