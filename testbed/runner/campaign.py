"""Campaigns: variants × repeats that one command runs, and what makes them the same campaign again."""

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from results.compare import ComparisonRule, Measure, find_measure, measures
from results.contract.store import Store, StoreError
from testbed.errors import UsageError
from testbed.experiments.reports import default_store
from testbed.runner.schedule import Slot, grouped
from testbed.runner.variant import Variant, check_labels, resolve

NIGHTLY = "nightly"
"""The door whose variants are scenarios, each compared with its own past."""
QUALIFY = "qualify"
"""The door whose groups are scenarios, each run with every version."""
TOLD_UNFINISHED = (NIGHTLY, QUALIFY)
"""Where several runs in a row could not be made, what was made is told all the same, and what was not, and why."""


COMPARING = ("compare", "qualify")
"""Doors that say what is better or worse."""


def default_measures(door: str, variants: Sequence[Variant]) -> tuple[str, ...]:
    """All that are not only asked for; of a door that compares, those that are compared.

    Variants that differ in their Kafka alone move the same: what tells of different amounts is left out.
    """
    told = door not in COMPARING
    alike = door == "qualify" or len({(each.experiment, each.settings, each.topology) for each in variants}) == 1
    return tuple(each.name for each in measures() if not each.asked and (told or _wanted(each, alike=alike)))


def _wanted(measure: Measure, *, alike: bool) -> bool:
    return measure.compared and (measure.followed or not alike)


@dataclass(frozen=True, slots=True)
class VariantGroup:
    """Variants that are run beside each other, in blocks of their own; `pairs` are (baseline, candidate) each.

    What is in no pair is run, and compared with nothing.
    """

    name: str
    labels: tuple[str, ...]
    repeats: int
    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "VariantGroup":
        """The inverse of `dataclasses.asdict`, after JSON."""
        pairs = tuple((baseline, candidate) for baseline, candidate in document["pairs"])
        return cls(document["name"], tuple(document["labels"]), document["repeats"], pairs)


@dataclass(frozen=True, slots=True)
class Campaign:
    """Variants × repeats. Unless there are groups, the first variant is the baseline the others are compared with."""

    id: str
    door: str
    """The command it was started by."""
    variants: tuple[Variant, ...]
    repeats: int
    seed: int
    store: str
    measures: tuple[str, ...]
    threshold: float
    """A change of more than this fraction counts."""
    grounds: tuple[str, ...]
    """The digest of each variant's topology, Kafka versions included, as it was when the campaign began."""
    groups: tuple[VariantGroup, ...] = ()
    """One after the other; none: all variants are one."""

    @property
    def parts(self) -> tuple[VariantGroup, ...]:
        """Its groups, in order."""
        labels = tuple(variant.label for variant in self.variants)
        return self.groups or (VariantGroup("", labels, self.repeats, tuple((labels[0], each) for each in labels[1:])),)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Every run to be made, in order."""
        return grouped([(part.labels, part.repeats) for part in self.parts], self.seed)

    def part_of(self, slot: Slot) -> tuple[VariantGroup, int]:
        """The group a slot belongs to, and the number of its first block."""
        first = 0
        for part in self.parts:
            if slot.block < first + part.repeats:
                return part, first
            first += part.repeats
        raise ValueError(f"slot {slot.index} is in block {slot.block}; there are {first}")

    def variant(self, label: str) -> Variant:
        """The variant of this label."""
        return next(variant for variant in self.variants if variant.label == label)

    def document(self) -> dict[str, Any]:
        """As JSON has it; `from_document` inverts it."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Campaign":
        """A campaign from its document. Raises KeyError or TypeError for what is none."""
        variants = tuple(Variant.from_document(each) for each in document["variants"])
        groups = tuple(VariantGroup.from_document(each) for each in document.get("groups", ()))
        plain = {name: tuple(document[name]) for name in ("measures", "grounds")}
        return cls(**{**document, **plain, "variants": variants, "groups": groups})

    @property
    def begun(self) -> datetime:
        """When the campaign was begun."""
        return datetime.strptime(f"{self.id.split('-')[0]}+0000", "%Y%m%dT%H%M%SZ%z")

    def differences(self, other: "Campaign") -> list[str]:
        """What another campaign asks for otherwise, the id apart; empty when both mean the same runs."""
        return [
            f"{name}: {getattr(self, name)} there, {getattr(other, name)} here"
            for name in ("door", "variants", "repeats", "seed", "store", "measures", "threshold", "grounds", "groups")
            if getattr(self, name) != getattr(other, name)
        ]


def new_campaign(
    door: str,
    variants: Sequence[Variant],
    repeats: int,
    seed: int,
    *,
    store: str | None = None,
    measure_names: Sequence[str] = (),
    threshold: float = ComparisonRule().threshold,
    groups: Sequence[VariantGroup] = (),
) -> Campaign:
    """A campaign that can be run: everything looked up once. Raises `UsageError` for what cannot."""
    check_labels(variants)
    variants = [replace(each, topology=lasting(each.topology), kafka=lasting(each.kafka)) for each in variants]
    grounds = tuple(resolve(variant).ground for variant in variants)
    if repeats < 1:
        raise UsageError(f"{repeats} repeats: at least 1 is needed")
    told = door not in COMPARING
    names = tuple(measure_names) or default_measures(door, variants)
    try:
        for name in names:
            if not (find_measure(name).compared or told):
                raise ValueError(f"{name} says nothing of better or worse, `testbed sweep` tells it: leave it out")
        ComparisonRule(threshold=threshold)
        location = Store.open(store or default_store()).location
    except (ValueError, StoreError) as error:
        raise UsageError(str(error)) from error
    identity = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{door}-{secrets.token_hex(3)}"
    return Campaign(identity, door, tuple(variants), repeats, seed, location, names, threshold, grounds, tuple(groups))


def lasting(text: str | None) -> str | None:
    """What is named, so that it is the same file or folder when the campaign is resumed from somewhere else."""
    return str(Path(text).absolute()) if text is not None and Path(text).exists() else text


def require_tellable(campaign: Campaign) -> None:
    """Raises `UsageError` when so few pairs could not be told from luck in so many comparisons."""
    paired = [part for part in campaign.parts if part.pairs]
    comparisons = sum(len(part.pairs) for part in paired) * len(campaign.measures)
    fewest = fewest_pairs_to_tell(comparisons)
    repeats = min((part.repeats for part in paired), default=fewest)
    if repeats < fewest:
        raise UsageError(
            f"{repeats} pairs: among {comparisons} comparisons no regression could be told from luck; "
            f"take at least {fewest} pairs, or fewer measures (--measure move-seconds)"
        )


def fewest_pairs_to_tell(comparisons: int, rule: ComparisonRule | None = None) -> int:
    """How many pairs are needed so that the clearest possible regression is beyond luck among so many comparisons."""
    rule = rule or ComparisonRule()
    # When all n pairs agree, luck has a chance of 2⁻ⁿ.
    return max(rule.fewest_pairs, math.ceil(math.log2(max(comparisons, 1) / rule.family)))
