"""Kafka's own binary forms: numbers of variable length, and what is written with them. Pure."""


class Reader:
    """Reads from `bytes`, onwards from `at`; IndexError where they end."""

    def __init__(self, content: bytes) -> None:
        self.bytes = content
        self.at = 0

    def unsigned(self) -> int:
        """Seven bits a byte, the lowest first."""
        value = shift = 0
        while True:
            byte = self.bytes[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self) -> int:
        """The same, with the sign in the lowest bit."""
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def take(self, count: int) -> bytes:
        """The next bytes, which must be there."""
        taken = self.bytes[self.at : self.at + count]
        if count < 0 or len(taken) < count:
            raise IndexError(f"{count} bytes wanted at {self.at}")
        self.at += count
        return taken

    def skip(self, count: int) -> None:
        """Leave out the next bytes."""
        self.at += count
