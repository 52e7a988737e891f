"""What a suite is: for each profile a list of cases, a case being an experiment with its settings."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from testbed.discover import discovered
from testbed.errors import UsageError
from testbed.experiments.experiment import PROFILES
from testbed.suggestions import did_you_mean

LIMIT_S = 420.0
"""How long a case may take unless it says otherwise: about three times what a move of the `ci` profile needs."""
PROFILE_VARIABLE = "TESTBED_PROFILE"
CASES_VARIABLE = "TESTBED_CASES"


@dataclass(frozen=True, slots=True)
class Case:
    """One experiment with its settings. A case that is not done after `limit_s` seconds is stopped and has failed."""

    name: str
    experiment: str
    settings: tuple[str, ...] = ()
    """`NAME=VALUE` each, over the defaults of the experiment's profile."""
    topology: str | None = None
    """A ready topology, instead of the experiment's own."""
    limit_s: float = LIMIT_S


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases by profile; the ducktape tests that run them are those of `tests`, a file of `ducktests/`."""

    name: str
    summary: str
    tests: str
    profiles: Mapping[str, Sequence[Case]]

    def __post_init__(self) -> None:
        for profile, cases in self.profiles.items():
            names = [case.name for case in cases]
            if len(set(names)) != len(names) or profile not in PROFILES:
                raise ValueError(
                    f"suite {self.name}, profile {profile}: unknown profile, or a case that is there twice"
                )

    def cases(self, profile: str, only: Iterable[str] = ()) -> tuple[Case, ...]:
        """The profile's cases, all or those named. Raises `UsageError` naming those there are."""
        if profile not in self.profiles:
            raise UsageError(f"profile {profile!r}: suite {self.name} has {', '.join(self.profiles)}")
        cases = {case.name: case for case in self.profiles[profile]}
        wanted = list(only)
        for name in wanted:
            if name not in cases:
                known = f"{', '.join(cases)}{did_you_mean(name, cases)}"
                raise UsageError(f"suite {self.name}, profile {profile}: no case {name!r}, only {known}")
        return tuple(case for name, case in cases.items() if not wanted or name in wanted)


def suites() -> dict[str, Suite]:
    """Every suite by name: each module of the catalogue has one, called SUITE."""
    return {suite.name: suite for suite in discovered("testbed.suites.catalogue", "SUITE").values()}


def find_suite(name: str) -> Suite:
    """The suite of this name. Raises `UsageError` naming those there are."""
    known = suites()
    if name not in known:
        raise UsageError(f"no suite {name!r}; there are {', '.join(sorted(known))}")
    return known[name]


def chosen_profile() -> str:
    """The profile that tests are made for: ducktape has no option that they could see when they are loaded."""
    return os.environ.get(PROFILE_VARIABLE) or "ci"


def chosen_cases(suite: Suite) -> tuple[Case, ...]:
    """The cases that ducktape's tests are made for. Raises `UsageError`."""
    only = [name for name in os.environ.get(CASES_VARIABLE, "").split(",") if name]
    return suite.cases(chosen_profile(), only)
