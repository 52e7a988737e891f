"""The performance data that a JVM of JDK 17 keeps in a file, made from counters and texts."""

import struct


def performance_data(counters):
    """Return the file with these entries: numbers are counters, texts are byte vectors."""
    entries = b""
    for name, value in counters.items():
        text = name.encode() + b"\0"
        data_at = 20 + len(text) + -len(text) % 8
        if isinstance(value, str):
            data, vector, kind = value.encode() + b"\0", len(value) + 1, ord("B")
        else:
            data, vector, kind = struct.pack("<q", value), 0, ord("J")
        length = data_at + len(data) + -len(data) % 8
        head = struct.pack("<iii4bi", length, 20, vector, kind, 0, 1, 2, data_at)
        entries += (head + text).ljust(data_at, b"\0") + data.ljust(length - data_at, b"\0")
    return struct.pack(">IBBBB", 0xCAFEC0C0, 1, 2, 0, 1) + struct.pack("<iiqii", 0, 0, 0, 32, len(counters)) + entries
