"""The scenarios that a qualification runs. It imports little, so that the command's help can name the suites."""

from dataclasses import dataclass

SUITES = ("kip73", "kip435", "kip455", "s3", "incidents")
"""The suites whose cases are run unless the user names others."""
PAIRS = 10
"""Runs of each version in a comparison, unless the user names a number."""
SPARES = 3
"""The most pairs of a scenario that are made in place of pairs that are of no use."""


@dataclass(frozen=True, slots=True)
class QualificationScope:
    """The scenarios of a qualification.

    `only` and `paired` name cases as `SUITE/CASE`; `only` may also name upgrades and downgrades, as the report does.
    `paired` None means the default cases; with `measures` only those under a throttle, as some measures need one.
    `pairs` None means `PAIRS`, or more if so many comparisons need more.
    """

    profile: str = "ci"
    suites: tuple[str, ...] = SUITES
    only: tuple[str, ...] = ()
    paired: tuple[str, ...] | None = None
    pairs: int | None = None
    upgrades: bool = True
    measures: tuple[str, ...] = ()
