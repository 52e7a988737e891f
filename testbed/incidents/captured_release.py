"""The release of Kafka that the replay of a capture runs: that of the captured brokers, as far as it is known. Pure."""

import re
from collections.abc import Collection

from testbed.software.kafka import DEFAULT_KAFKA
from testbed.software.source import too_old

LINE_OF_LEVEL = {
    **{7: "3.3", 8: "3.4", 11: "3.5", 14: "3.6", 19: "3.7", 20: "3.8"},
    **{21: "3.9", 25: "4.0", 27: "4.1", 29: "4.2", 30: "4.3"},
}
"""The highest `metadata.version` that a broker knows → its release without the last number, by `MetadataVersion`."""
_LINE, _RELEASE = re.compile(r"\d+\.\d+"), re.compile(r"\d+\.\d+\.\d+")
_LOGGED = re.compile(r"\bKafka version: (\d{1,3}\.\d{1,3}\.\d{1,3})([^\s\d][^\s]*)?(?=\s|$)")


def logged_release(message: str) -> str | None:
    """Return the release that a broker logs when it starts, such as `4.1.1`; None for any other message.

    What a build has behind its number may be a name, and is left out.
    """
    found = _LOGGED.search(message)
    if found is None:
        return None
    return f"a build of {found[1]}" if found[2] else found[1]


def replayed_release(releases: Collection[str], known: Collection[str]) -> tuple[str, str | None]:
    """Return the release of the replay, and a note where it is not simply that of the brokers.

    `releases` are those of the brokers; one such as `4.1` stands for the newest of the `known` ones that begin so.
    """
    if not releases:
        return DEFAULT_KAFKA, (
            f"the release of the brokers is not known, and the replay runs {DEFAULT_KAFKA}: a server.log with a start "
            "shows it; --kafka sets another one"
        )
    candidates = [each for each in releases if _RELEASE.fullmatch(each) and too_old(each) is None]
    lines = tuple(f"{each}." for each in releases if _LINE.fullmatch(each))
    candidates += [each for each in known if lines and each.startswith(lines)]
    chosen = max(candidates, key=lambda each: [*map(int, each.split("."))], default=DEFAULT_KAFKA)
    if {*releases} == {chosen}:
        return chosen, None
    return chosen, f"the brokers ran Kafka {', '.join(sorted(releases))}, and the replay runs {chosen}"
