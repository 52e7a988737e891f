"""The type of a suite: a list of cases for each profile. A case is an experiment with its settings."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from testbed.catalogue import discovered
from testbed.errors import UsageError
from testbed.experiments.experiment import PROFILES, experiments
from testbed.software.automq import VARIABLE, NoDistribution, supplied
from testbed.suggestions import did_you_mean, existing
from testbed.topology.find import find

LIMIT_S = 420.0
"""The default time limit of a case: about three times the duration of a move of the `ci` profile."""
PROFILE_VARIABLE = "TESTBED_PROFILE"
CASES_VARIABLE = "TESTBED_CASES"


@dataclass(frozen=True, slots=True)
class Case:
    """One experiment with its settings. A case is stopped and fails after `limit_s` seconds."""

    name: str
    experiment: str
    settings: tuple[str, ...] = ()
    """Settings in the form `NAME=VALUE`, which replace the defaults of the experiment's profile."""
    topology: str | None = None
    """A ready topology that replaces the experiment's own."""
    limit_s: float = LIMIT_S


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases by profile. `tests` names the file of `ducktests/` with the ducktape tests that run them."""

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
        """Return the profile's cases whose software is there, all or the named ones.

        Raise `UsageError`, with the existing names, when there is none.
        """
        if profile not in self.profiles:
            raise UsageError(f"profile {profile!r}: suite {self.name} has {', '.join(self.profiles)}")
        cases = {case.name: case for case in self.profiles[profile]}
        wanted, lacking = list(only), self.not_run(profile)
        for name in wanted:
            if name not in cases:
                known = f"{', '.join(cases)}{did_you_mean(name, cases)}"
                raise UsageError(f"suite {self.name}, profile {profile}: no scenario {name!r}, only {known}")
            if name in lacking:
                why = f"scenario {name} cannot be run: {lacking[name]}"
                raise UsageError(f"suite {self.name}, profile {profile}: {why}")
        return tuple(case for name, case in cases.items() if name not in lacking and (not wanted or name in wanted))

    def not_run(self, profile: str, only: Iterable[str] = ()) -> dict[str, str]:
        """Return the profile's cases whose software you have to supply and have not, each with the reason."""
        wanted, found = list(only), {}
        for case in self.profiles.get(profile, ()):
            if (not wanted or case.name in wanted) and (why := unsupplied(case)):
                found[case.name] = why
        return found


def unsupplied(case: Case) -> str:
    """Return why the software of a case's topology is not there; empty when it is, or when Maven Central has it."""
    source = None if case.topology is None else find(case.topology).automq
    if source is None:
        return ""
    try:
        supplied(source.path, source.image)
    except NoDistribution:
        return f"no AutoMQ is supplied: set {VARIABLE} (docs/automq.md)"
    return ""


def suites() -> dict[str, Suite]:
    """Return every suite by name: the SUITE of each module of the catalogue."""
    return {suite.name: suite for suite in discovered("testbed.suites.catalogue", "SUITE").values()}


def find_suite(name: str) -> Suite:
    """Return the suite of this name. Raise `UsageError`, with the existing names, when there is none."""
    found = suites()
    return found[existing("suite", name, sorted(found))]


def chosen_profile() -> str:
    """Return the profile of the ducktape tests.

    It is an environment variable, as tests see no ducktape option while they load.
    """
    return os.environ.get(PROFILE_VARIABLE) or "ci"


def chosen_cases(suite: Suite) -> tuple[Case, ...]:
    """Return the cases of the ducktape tests. Raise `UsageError` when there is no such profile or case."""
    only = [name for name in os.environ.get(CASES_VARIABLE, "").split(",") if name]
    return suite.cases(chosen_profile(), only)


def suite_of_experiments(name: str, question: str, *, release_limit_s: float = LIMIT_S) -> Suite:
    """Return the suite of all scenarios that experiments declare for it, in their order.

    The file `ducktests/NAME_test.py` has its ducktape tests. `release_limit_s` is the limit of scenarios without one of
    their own in the profile `release`.
    """
    declared = [
        (scenario, experiment)
        for experiment in experiments().values()
        for scenario in experiment.suites
        if scenario.suite == name
    ]
    profiles: dict[str, list[Case]] = {}
    for scenario, experiment in sorted(declared, key=lambda each: each[0].order):
        ready = experiment.ready_topology(dict(word.split("=", 1) for word in scenario.settings))
        topology = scenario.topology or (ready if ready != experiment.topology else None)
        for profile in scenario.profiles:
            limit_s = scenario.limit_s or (release_limit_s if profile == "release" else LIMIT_S)
            case = Case(scenario.name, experiment.name, scenario.settings, topology, limit_s)
            profiles.setdefault(profile, []).append(case)
    known = sorted(profiles, key=PROFILES.index)
    return Suite(name, question, f"{name}_test.py", {profile: tuple(profiles[profile]) for profile in known})
