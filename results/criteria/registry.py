"""Which functions judge which experiment. A new one is a new file in `results/criteria/experiments`."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from results.contract.manifest import Manifest
from results.contract.verdict import Finding, Verdict, overall
from results.criteria.measures import MoveMeasures

Measure = Callable[[Manifest, Any, Any], MoveMeasures]
Judge = Callable[[Manifest, MoveMeasures], list[Finding]]


class UnknownExperimentError(ValueError):
    """No judgement is registered for an experiment; the message lists those that are."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A run's criteria and the measures they came from."""

    criteria: tuple[Finding, ...]
    measures: MoveMeasures

    @property
    def verdict(self) -> Verdict:
        """The run's verdict."""
        return overall(self.criteria)


@dataclass(frozen=True, slots=True)
class Rules:
    """How an experiment is judged: samples to measures, measures to criteria."""

    measure: Measure
    judge: Judge


_RULES: dict[str, Rules] = {}
_FAMILIES: dict[str, Rules] = {}


def register(experiment: str, *, measure: Measure, judge: Judge) -> None:
    """Say how an experiment is judged; called by the modules of `results/criteria/experiments`."""
    if experiment in _RULES:
        raise ValueError(f"experiment {experiment!r} has rules already")
    _RULES[experiment] = Rules(measure, judge)


def register_family(prefix: str, *, measure: Measure, judge: Judge) -> None:
    """Say how every experiment is judged whose name begins so and has no rules of its own."""
    if prefix in _FAMILIES:
        raise ValueError(f"experiments {prefix}… have rules already")
    _FAMILIES[prefix] = Rules(measure, judge)


def rules_for(experiment: str) -> Rules:
    """The rules of an experiment; raises UnknownExperimentError.

    The modules register themselves when they are imported. `testbed.discover` finds things in the same way, but this
    package knows nothing of the testbed: a store is judged where there is none.
    """
    package = importlib.import_module("results.criteria.experiments")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    if experiment not in _RULES:
        family = next((rules for prefix, rules in _FAMILIES.items() if experiment.startswith(prefix)), None)
        if family is not None:
            return family
        known = ", ".join(sorted([*_RULES, *(f"{prefix}…" for prefix in _FAMILIES)]))
        raise UnknownExperimentError(f"no judgement for experiment {experiment!r}; known: {known}")
    return _RULES[experiment]


def judge(manifest: Manifest, samples: Any, events: Any) -> Judgement:
    """Measure and judge a run; `samples` and `events` as Arrow tables or pandas DataFrames."""
    rules = rules_for(manifest.experiment)
    measures = rules.measure(manifest, samples, events)
    return Judgement(tuple(rules.judge(manifest, measures)), measures)
