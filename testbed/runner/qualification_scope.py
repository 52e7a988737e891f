"""The scenarios that a qualification runs. It imports little, so that the command's help can name the suites."""

from dataclasses import dataclass

SUITES = ("kip73", "kip435", "kip455", "s3", "incidents")
"""The suites whose cases are run unless the user names others."""

USUAL_PAIRS = 10


@dataclass(frozen=True, slots=True)
class QualificationScope:
    """The scenarios of a qualification.

    `only` and `paired` name cases as `SUITE/CASE`; `only` may also name upgrades and downgrades, as the report does.
    `paired` None means the default cases.
    """

    profile: str = "ci"
    suites: tuple[str, ...] = SUITES
    only: tuple[str, ...] = ()
    paired: tuple[str, ...] | None = None
    pairs: int | None = None
    """Pairs of each comparison. None: `USUAL_PAIRS`, and more where so many comparisons cannot tell a regression."""
    upgrades: bool = True
