"""Variants of an experiment, each with its settings, its Kafka and its topology."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from testbed.defects.parse import by_host
from testbed.errors import UsageError
from testbed.experiments.experiment import PROFILES, Experiment, Value, read_settings, require_once
from testbed.experiments.mid_move_actions import SAME
from testbed.experiments.run_topology import run_topology
from testbed.incidents.library import find_experiment_or_incident, own_software
from testbed.software.source import is_path, parse_source
from testbed.suites.suite import Case
from testbed.topology.find import find
from testbed.topology.model import Topology

DEFECT = "defect="
"""The setting of a variant that is no parameter of its experiment: a defect of the brokers."""
DISTRIBUTION = "distribution="
"""The setting of a load whose one value has commas: sizes with weights."""
UPGRADE = "kip73-upgrade"
"""The experiment that ends with another Kafka than it begins with."""
TARGET = "to="
"""Its setting that names that Kafka."""
_ODD = re.compile(r"[^A-Za-z0-9._+-]+")
_MOST_NAME = 30
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._,/=+-]{0,119}")


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run an experiment; a field that is None has the experiment's or the topology's default."""

    label: str
    experiment: str
    profile: str = "ci"
    settings: tuple[str, ...] = ()
    """Settings in the form `NAME=VALUE`."""
    kafka: str | None = None
    """A version, or another value that `testbed up --kafka` accepts."""
    topology: str | None = None
    limit_s: float | None = None
    """The seconds after which a run is stopped and fails; None: no limit."""
    defects: tuple[str, ...] = ()
    """The defects of the brokers, as `testbed.defects` reads them."""

    @property
    def kafkas(self) -> tuple[str, ...]:
        """Return every Kafka that the variant names: the first one that it starts, then that of an upgrade."""
        targets = [word.removeprefix(TARGET) for word in self.settings if word.startswith(TARGET)]
        upgraded = [each for each in targets if each != SAME] if self.experiment == UPGRADE else []
        return tuple(each for each in (self.kafka, *upgraded) if each is not None)

    @property
    def values(self) -> dict[str, str]:
        """Return the value of each setting."""
        return dict(word.split("=", 1) for word in self.settings)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A variant with its experiment, settings and topology resolved."""

    variant: Variant
    experiment: Experiment
    settings: Mapping[str, Value]
    topology: Topology = field(repr=False)
    overlay: Mapping[str, str]
    defects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Host → the options of the Java agent that breaks its broker."""

    @property
    def topology_digest(self) -> str:
        """Return the digest of the topology; variants with the same digest can share a testbed."""
        return self.topology.digest()


def resolve(variant: Variant) -> Resolved:
    """Return the resolved variant. Raise `UsageError`, or the topology's own error, when it cannot be run."""
    experiment = find_experiment_or_incident(variant.experiment)
    if variant.profile not in PROFILES:
        raise UsageError(f"no profile {variant.profile!r}; there are {', '.join(PROFILES)}")
    settings = read_settings(experiment, variant.profile, variant.settings)
    kafka, own_defects = own_software(variant.experiment)
    topology = run_topology(experiment, settings, variant.topology, variant.kafka or kafka)
    defects = by_host(variant.defects or own_defects, topology)
    return Resolved(variant, experiment, settings, topology, experiment.overlay(settings), defects)


def of_case(case: Case, profile: str, kafka: str | None = None) -> Variant:
    """Return the variant that runs a suite's case. A case on AutoMQ's topology runs AutoMQ, whatever `kafka` names."""
    if case.topology is not None and find(case.topology).automq is not None:
        kafka = None
    return Variant(case.name, case.experiment, profile, case.settings, kafka, case.topology, case.limit_s)


def called(kafka: str) -> str:
    """Return a Kafka's name in labels: a version, or a path's last part. Raise `UsageError` for any other text."""
    source = str(parse_source(kafka))
    name = re.sub(r"\.(tgz|tar\.gz)$", "", Path(source).name) if is_path(source) else source
    return _ODD.sub("-", name).strip("-.")[:_MOST_NAME] or "kafka"


def of_each(base: Variant, kafkas: Sequence[str]) -> tuple[Variant, ...]:
    """Return a variant for each Kafka; builds of one name are numbered. Raise `UsageError` when a Kafka is wrong."""
    names: list[str] = []
    for text in dict.fromkeys(kafkas):
        name = called(text)
        alike = sum(each == name or each.startswith(f"{name}, ") for each in names)
        names.append(f"{name}, {alike + 1}" if alike else name)
    labels = dict(zip(dict.fromkeys(kafkas), names, strict=True))
    return tuple(replace(base, label=f"kafka {labels[text]}", kafka=text) for text in kafkas)


def values_of(word: str) -> list[str]:
    """Return the values of a `NAME=VALUE,VALUE,…` text. A distribution is one value, whatever commas it has."""
    text = word.partition("=")[2]
    return [text] if word.startswith(DISTRIBUTION) else [value.strip() for value in text.split(",")]


def product(base: Variant, sets: Sequence[str]) -> tuple[Variant, ...]:
    """Return the cartesian product of the `NAME=VALUE,VALUE,…` texts; the first variant has every first value.

    A name with one value belongs to every variant and to no label. Raise `UsageError` when a text is wrong.
    """
    axes: dict[str, list[str]] = {}
    for word in sets:
        name, equals, _text = word.partition("=")
        given = values_of(word)
        if not equals or not all(given):
            raise UsageError(f"--set {word}: expected NAME=VALUE or NAME=VALUE,VALUE,…")
        if name in axes:
            raise UsageError(f"--set {word}: {name} is given twice; give its values in one --set, separated by commas")
        if len(set(given)) != len(given):
            raise UsageError(f"--set {word}: a value is given twice; give each once")
        axes[name] = given
    found = []
    for values in itertools.product(*axes.values()):
        chosen = [f"{name}={value}" for name, value in zip(axes, values, strict=True)]
        shown = [_shown(word) for word, axis in zip(chosen, axes.values(), strict=True) if len(axis) > 1]
        found.append(_with(base, " ".join(shown) or base.label, chosen))
    return tuple(found)


def _shown(word: str) -> str:
    """Return a setting's form in labels: a Kafka's path by its last part, a defect without its punctuation."""
    name, _equals, value = word.partition("=")
    if word.startswith(DEFECT):
        return word.replace(":", " ").replace("@", " ")  # neither is allowed in a label
    return f"kafka={called(value)}" if name == "kafka" and is_path(value) else word


def split_defects(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the settings and the defects among `NAME=VALUE` texts."""
    settings = tuple(word for word in words if not word.startswith(DEFECT))
    return settings, tuple(word.removeprefix(DEFECT) for word in words if word.startswith(DEFECT))


def differing(variants: Sequence[Variant]) -> tuple[tuple[str, ...], Mapping[str, tuple[str, ...]]]:
    """Return the names in which variants differ, and each label's values; an empty one is the default. Pure."""
    said = {variant.label: _said(variant) for variant in variants}
    names = list(dict.fromkeys(name for values in said.values() for name in values))
    axes = tuple(name for name in names if len({values.get(name, "") for values in said.values()}) > 1)
    return axes, {label: tuple(values.get(name, "") for name in axes) for label, values in said.items()}


def _said(variant: Variant) -> dict[str, str]:
    others = {"kafka": variant.kafka, "topology": variant.topology, "defect": " ".join(variant.defects) or None}
    return variant.values | {name: value for name, value in others.items() if value is not None}


def parse_variant(text: str, base: Variant) -> Variant:
    """Return `base` changed by `LABEL: NAME=VALUE …`; `defect=` adds one. Raise `UsageError` for a wrong text."""
    label, colon, rest = text.partition(":")
    if not colon:
        raise UsageError(f"--variant {text!r}: expected 'LABEL: NAME=VALUE …', for instance 'tuned: fetch=tuned'")
    # A comma also parts settings, but belongs to the text of a defect or of a distribution.
    whole = (DEFECT, DISTRIBUTION)
    words = [part for word in rest.split() for part in ([word] if word.startswith(whole) else word.split(",")) if part]
    require_once(word for word in words if not word.startswith(DEFECT))
    return _with(base, label.strip(), words)


def check_labels(variants: Sequence[Variant]) -> None:
    """Raise `UsageError` when a label is not valid, or two are equal."""
    for variant in variants:
        if not _LABEL.fullmatch(variant.label):
            raise UsageError(
                f"variant {variant.label!r}: a label begins with a letter or digit and has at most 120 of "
                "letters, digits, blanks and . _ , / = + -"
            )
    labels = [variant.label for variant in variants]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise UsageError(f"variant {twice[0]!r} is there twice; give each its own label: --variant 'LABEL: NAME=VALUE'")


def _with(base: Variant, label: str, words: Sequence[str]) -> Variant:
    found = replace(base, label=label)
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise UsageError(f"variant {label}: {word!r}: expected NAME=VALUE")
        if name == "kafka":
            found = replace(found, kafka=value)
        elif name == "topology":
            found = replace(found, topology=value)
        elif word.startswith(DEFECT):
            found = replace(found, defects=(*found.defects, value))
        else:
            found = replace(found, settings=(*found.settings, word))
    return found
