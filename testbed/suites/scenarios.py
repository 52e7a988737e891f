"""The scenarios of a suite, gathered from the experiments that declare them."""

from testbed.experiments.experiment import PROFILES, experiments
from testbed.suites.suite import LIMIT_S, Case, Suite


def suite_of_experiments(name: str, question: str) -> Suite:
    """Return the suite of all scenarios that experiments declare for it, in their order.

    The file `ducktests/NAME_test.py` has its ducktape tests.
    """
    declared = [
        (scenario, experiment.name)
        for experiment in experiments().values()
        for scenario in experiment.suites
        if scenario.suite == name
    ]
    profiles: dict[str, list[Case]] = {}
    for scenario, experiment in sorted(declared, key=lambda each: each[0].order):
        limit_s = LIMIT_S if scenario.limit_s is None else scenario.limit_s
        case = Case(scenario.name, experiment, scenario.settings, scenario.topology, limit_s)
        for profile in scenario.profiles:
            profiles.setdefault(profile, []).append(case)
    order = {profile: number for number, profile in enumerate(PROFILES)}
    known = sorted(profiles, key=lambda profile: order.get(profile, len(order)))
    return Suite(name, question, f"{name}_test.py", {profile: tuple(profiles[profile]) for profile in known})
