"""The jars this project knows, by their committed digests."""

import json
from functools import cache
from pathlib import Path

from testbed.software.errors import SoftwareError

DIGESTS = Path(__file__).with_name("kafka-digests.json")


@cache
def known_digests() -> dict[str, dict[str, str]]:
    """The committed sha256 of every jar, by version and file name (the agent under its coordinates)."""
    document = json.loads(DIGESTS.read_text(encoding="utf-8"))
    return {str(version): dict(jars) for version, jars in document.items()}


def verify(version: str, found: dict[str, str]) -> None:
    """Compare jars with the committed digests; a version without any is trusted at first use.

    Raises SoftwareError that names each jar that is missing, unknown or different.
    """
    known = known_digests().get(version)
    if known is None or known == found:
        return
    differences = [f"{jar}: missing" for jar in known.keys() - found.keys()]
    differences += [f"{jar}: not part of this release" for jar in found.keys() - known.keys()]
    differences += [
        f"{jar}: sha256 {found[jar]}, expected {known[jar]}"
        for jar in known.keys() & found.keys()
        if found[jar] != known[jar]
    ]
    raise SoftwareError(
        f"the jars Maven gave for Kafka {version} are not the ones this project knows:\n  "
        + "\n  ".join(sorted(differences))
        + "\nRemove them from Maven's local repository (~/.m2) and look at which mirror its settings name."
    )
