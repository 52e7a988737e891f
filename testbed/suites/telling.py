"""How ducktape's processes tell `testbed suite` what they do: lines on standard output that begin with a mark."""

SUITE_VARIABLE = "TESTBED_SUITE_PROCESS"
"""The process number of the `testbed suite` that ducktape works for."""
MARK = "testbed: "


def tell(text: str) -> None:
    """Say one step; a text of several lines becomes one."""
    print(f"{MARK}{' '.join(text.split())}", flush=True)


def told(line: str) -> str | None:
    """The text of a line that `tell` printed; None for any other line."""
    return line[len(MARK) :].rstrip("\n") if line.startswith(MARK) else None
