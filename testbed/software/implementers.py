"""Which classes in jars implement a Java interface, as their class files say. Pure, but for reading the jars."""

import struct
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from testbed.software.errors import SoftwareError

_MAGIC = 0xCAFEBABE
_INTERFACE, _ABSTRACT = 0x0200, 0x0400
_UTF8, _CLASS = 1, 7
# Bytes that follow the tag of each other kind of constant (The Java Virtual Machine Specification, 4.4).
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_TWO_PLACES = (5, 6)


def implementers(jars: Iterable[Path], interface: str) -> list[str]:
    """The names of classes that can be made and that say they implement `interface` themselves, sorted.

    Raises SoftwareError for a jar that cannot be read.
    """
    wanted = interface.replace(".", "/")
    return sorted({name for jar in jars for name in _in_jar(jar, wanted)})


def _in_jar(jar: Path, wanted: str) -> Iterator[str]:
    try:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if not entry.endswith(".class"):
                    continue
                content = archive.read(entry)
                if wanted.encode() in content and (found := implementer(content, wanted)):
                    yield found
    except (OSError, zipfile.BadZipFile, struct.error, KeyError) as error:
        raise SoftwareError(f"{jar}: not a jar that can be read ({error})") from error


def implementer(content: bytes, wanted: str) -> str:
    """The class's name, if its file says that it implements `wanted` (`a/b/C`) and can be made; otherwise empty."""
    magic, _minor, _major, count = struct.unpack_from(">IHHH", content)
    if magic != _MAGIC:
        return ""
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    at, number = 10, 1
    while number < count:
        tag = content[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", content, at + 1)
            texts[number] = content[at + 3 : at + 3 + length].decode("utf-8", errors="replace")
            at += 3 + length
        elif tag == _CLASS:
            (classes[number],) = struct.unpack_from(">H", content, at + 1)
            at += 3
        else:
            at += 1 + _SIZES[tag]
        number += 2 if tag in _TWO_PLACES else 1
    access, this, _super, interfaces = struct.unpack_from(">HHHH", content, at)
    named = struct.unpack_from(f">{interfaces}H", content, at + 8)
    if access & (_INTERFACE | _ABSTRACT) or wanted not in {texts[classes[each]] for each in named}:
        return ""
    return texts[classes[this]].replace("/", ".")
