"""What can be expected: one file for each subject, found because it is there. Judged by pure functions."""

from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Protocol

from results.contract.schema import Finding
from testbed.incidents.evidence import Evidence
from testbed.incidents.phrases import Phrase, found_in, read

ALWAYS = ("logs-clean",)
"""What every replay is expected to be without a sentence, and a practice may be foretold to fail."""


class Expectation(Phrase, Protocol):
    """A frozen dataclass whose fields are what the sentence says; `name` is that of its criterion.

    What is `timed` depends on how fast network and machine are, and is judged on firm ground only.
    """

    timed: ClassVar[bool]

    def judge(self, evidence: Evidence, since_us: int, /) -> Finding:
        """Judge what was seen from an instant (µs since the epoch) to the end of the replay."""


@cache
def kinds() -> Mapping[str, type[Expectation]]:
    """Every kind of expectation by name."""
    return found_in(__name__)


def parse_expectation(text: object) -> Expectation:
    """The expectation that a sentence says. Raises `PhraseError`."""
    return read(text, kinds(), "an expectation")
