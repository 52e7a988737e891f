"""What a verdict other than pass is to ducktape, which knows only failed tests: an exception whose name tells."""


class Failed(AssertionError):
    """A verdict is fail."""


class Inconclusive(AssertionError):
    """Something could not be judged: no pass. ducktape has no word for it, so that it counts as failed there."""
