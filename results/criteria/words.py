"""Numbers in words, the same in the terminal, the store and the report."""


def rate(bytes_per_s: float) -> str:
    """A rate for people: ``9.85 MB/s``; -1, Kafka's describe of an absent quota, is ``none``."""
    return "none" if bytes_per_s == -1 else f"{size(bytes_per_s)}/s"


def size(size_bytes: float) -> str:
    """A size for people, decimal: ``112.4 MB``."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(size_bytes) >= factor:
            return f"{size_bytes / factor:.4g} {unit}"
    return f"{size_bytes:.4g} B"


def at(start_s: float) -> str:
    """An instant of the move: ``+3.2 s``."""
    return f"{start_s:+.1f} s"


def percent(fraction: float) -> str:
    """A fraction for people: ``98.5 %``."""
    return f"{fraction * 100:.1f} %"
