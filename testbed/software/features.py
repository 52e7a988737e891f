"""The feature levels in a `bootstrap.checkpoint`: what a cluster that is formatted with it starts at. Pure.

The file is a snapshot of the metadata log: batches of records in Kafka's own format, those about features being
of the kind FeatureLevelRecord; a feature at level 0 has no record.
"""

from collections.abc import Iterator, Mapping

from testbed.software.errors import SoftwareError
from testbed.software.varints import Reader

METADATA = "metadata.version"
_FEATURE_LEVEL = 12
_HEADER_BYTES = 61
_CONTROL = 0x20


def feature_levels(checkpoint: bytes) -> dict[str, int]:
    """Feature → level, sorted by name. Raises SoftwareError for what is no such file."""
    try:
        levels = dict(sorted(_levels(checkpoint)))
    except (IndexError, UnicodeDecodeError) as error:
        raise SoftwareError(
            f"not a bootstrap.checkpoint that can be read ({len(checkpoint)} bytes): {error}"
        ) from error
    if METADATA not in levels:
        raise SoftwareError(f"not a bootstrap.checkpoint: it sets no {METADATA}, only {', '.join(levels) or 'nothing'}")
    return levels


def lowest(levels: Mapping[str, Mapping[str, int]]) -> str:
    """Of several releases, given the feature levels of each: the one whose features all the others have, too.

    Its checkpoint is the one a cluster of them starts with. Raises SoftwareError when there is none (two branches
    that each have a feature the other lacks).
    """
    # What is lower in metadata.version is asked first, so that among equals the answer is always the same.
    for name in sorted(levels, key=lambda name: (levels[name].get(METADATA, 0), name)):
        if not any(_above(levels[name], other) for other in levels.values()):
            return name
    told = "; ".join(f"{name}: {_told(each)}" for name, each in sorted(levels.items()))
    raise SoftwareError(f"these cannot be nodes of one cluster: each has features that another lacks ({told})")


def _above(levels: Mapping[str, int], other: Mapping[str, int]) -> bool:
    return any(level > other.get(feature, 0) for feature, level in levels.items())


def _told(levels: Mapping[str, int]) -> str:
    return ", ".join(f"{feature}={level}" for feature, level in sorted(levels.items()))


def _levels(checkpoint: bytes) -> Iterator[tuple[str, int]]:
    at = 0
    while at < len(checkpoint):
        end = at + 12 + int.from_bytes(checkpoint[at + 8 : at + 12])
        if end > len(checkpoint) or end < at + _HEADER_BYTES:
            raise IndexError(f"a batch at {at} does not end where it says")
        batch = Reader(checkpoint[at:end])
        if not int.from_bytes(batch.bytes[21:23]) & _CONTROL:
            yield from _batch(batch)
        at = end


def _batch(batch: Reader) -> Iterator[tuple[str, int]]:
    batch.at = _HEADER_BYTES
    for _ in range(int.from_bytes(batch.bytes[57:61])):
        length = batch.signed()
        end = batch.at + length
        batch.skip(1)  # attributes
        batch.signed(), batch.signed()  # time and offset, against the batch's
        batch.skip(max(0, batch.signed()))  # the key
        batch.signed()  # the value's length: it ends with the record
        batch.unsigned()  # the frame's version
        kind, _version = batch.unsigned(), batch.unsigned()
        if kind == _FEATURE_LEVEL:
            name = batch.take(batch.unsigned() - 1).decode("utf-8")
            yield name, int.from_bytes(batch.take(2), signed=True)
        batch.at = end
