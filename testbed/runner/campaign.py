"""Campaigns: the variants × repeats that one command runs, and the digests that identify a campaign on resume."""

import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from results.compare.compared_measures import Measure, find_measure, measures
from results.compare.effect import FEWEST_SEPARATED
from results.compare.judgement import ComparisonRule
from results.contract.document import decode
from testbed.errors import UsageError
from testbed.experiments.mid_move_actions import SAME
from testbed.experiments.reports import open_store_for_runs
from testbed.provision.software import builds_of
from testbed.runner.named_comparisons import COMMAND
from testbed.runner.schedule import Slot, grouped
from testbed.runner.variant import TARGET, UPGRADE, Variant, check_labels, resolve
from testbed.software.kafka import kafka_release
from testbed.software.source import parse_source
from testbed.yaml_document import is_file

NIGHTLY = "nightly"
"""The command whose variants are scenarios. Each scenario is compared with its own past."""
QUALIFY = "qualify"
"""The command whose groups are scenarios. Each scenario is run with every version."""
SELFTEST = "selftest"
"""The command whose groups are defects. Each of them is a question of its own."""
REPORTED_UNFINISHED = (NIGHTLY, QUALIFY, SELFTEST)
"""Commands that report finished runs, and missing runs with the reason, even when several in a row fail."""
COMPARING = ("compare", QUALIFY)
"""Commands that report a better or worse candidate."""
EARLIER_FIELDS = {"door": "command", "grounds": "topology_digests"}
"""Field of an earlier campaign's journal → field."""


def default_measures(command: str, variants: Sequence[Variant]) -> tuple[str, ...]:
    """Return the names of the measures of a campaign without `--measure`.

    A comparing command takes compared measures only. If the variants differ in their Kafka alone, they move the same
    data, and measures of the amount moved are left out.
    """
    alike = command == QUALIFY or len({(each.experiment, each.settings, each.topology) for each in variants}) == 1

    def wanted(measure: Measure) -> bool:
        return command not in COMPARING or (measure.compared and not (alike and measure.of_amounts))

    return tuple(each.name for each in measures() if not each.only_on_request and wanted(each))


EARLIER_MEASURES = ("move-seconds", "seconds-per-gb", "steady-mean", "highest-11s", "cpu-per-gb")
"""What comparing commands took without `--measure` before they compared the costs of brokers."""
LATER_MEASURES = frozenset({"connections-opened"})
"""Default measures that came after those costs. Campaigns of before have no run with them."""


def named_no_measure(campaign: "Campaign") -> bool:
    """Return whether the campaign has the default measures, those of an earlier version included."""
    usual = default_measures(campaign.command, campaign.variants)
    before = tuple(name for name in usual if name not in LATER_MEASURES)
    earlier = tuple(name for name in EARLIER_MEASURES if name in usual or not find_measure(name).of_amounts)
    return campaign.measures in (usual, before, earlier)


@dataclass(frozen=True, slots=True)
class VariantGroup:
    """Variants that are run in the same blocks; each of `pairs` is (baseline, candidate), and some may be in none."""

    name: str
    labels: tuple[str, ...]
    repeats: int
    pairs: tuple[tuple[str, str], ...]
    candidates: tuple[str, ...] = ()
    """Of a qualification, the variants with the candidate; empty: the last variant alone."""
    spares: int = field(default=0, compare=False)
    """The blocks that may be made after `repeats` of them, each in place of a block that is of no use.

    Journals of earlier versions have none, and are continued without."""

    @property
    def blocks(self) -> int:
        """Return the number of blocks, spares included."""
        return self.repeats + self.spares

    @property
    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the baselines' variants of a qualification's group, and the candidate's."""
        candidates = self.candidates or self.labels[-1:]
        return tuple(each for each in self.labels if each not in candidates), candidates

    @classmethod
    def against_first(cls, name: str, members: Sequence[Variant], repeats: int) -> "VariantGroup":
        """Return the group of these variants; each of the others is compared with the first one."""
        first, *others = labels = tuple(each.label for each in members)
        return cls(name, labels, repeats, tuple((first, each) for each in others))


@dataclass(frozen=True, slots=True)
class Campaign:
    """Variants × repeats. Without groups, the first variant is the baseline of all others."""

    id: str
    command: str
    """The command that started the campaign."""
    variants: tuple[Variant, ...]
    repeats: int
    seed: int
    store: str
    measures: tuple[str, ...]
    threshold: float
    """The smallest change that counts, as a fraction."""
    topology_digests: tuple[str, ...]
    """The digest of each variant's topology, Kafka versions included, at the beginning of the campaign."""
    groups: tuple[VariantGroup, ...] = ()
    """The groups, in order; empty when all variants are one group."""
    builds: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What the paths in topologies had at the beginning, as of `builds_of`; journals of earlier versions have none."""

    @property
    def variant_groups(self) -> tuple[VariantGroup, ...]:
        """Return the groups, in order."""
        return self.groups or (VariantGroup.against_first("", self.variants, self.repeats),)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Return every run to be made, in order. A qualification has one verdict, so its pairs take turns."""
        groups = self.variant_groups
        paired = tuple(number for number, group in enumerate(groups) if group.pairs)
        in_turn = paired if self.command == QUALIFY else ()
        return grouped(tuple((group.labels, group.blocks) for group in groups), self.seed, in_turn)

    def group_of(self, slot: Slot) -> tuple[VariantGroup, int]:
        """Return the group of a slot, and the number of the group's first block."""
        first = 0
        for group in self.variant_groups:
            if slot.block < first + group.blocks:
                return group, first
            first += group.blocks
        raise ValueError(f"slot {slot.index} is in block {slot.block}; there are {first}")

    def partners(self, slot: Slot) -> set[str]:
        """Return the variants without any of which a slot's run says nothing; empty when it says something alone."""
        group, _first = self.group_of(slot)
        if self.command == QUALIFY:
            baselines, candidates = group.sides
            return {*(candidates if slot.variant in baselines else baselines)}
        return {label for pair in group.pairs if slot.variant in pair for label in pair} - {slot.variant}

    def variant(self, label: str) -> Variant:
        """Return the variant with this label."""
        return next(variant for variant in self.variants if variant.label == label)

    def document(self) -> dict[str, Any]:
        """Return the campaign as JSON values; `from_document` inverts it."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Campaign":
        """Return the campaign of a document. Raise `DocumentError` when it is none."""
        return decode(cls, {EARLIER_FIELDS.get(name, name): value for name, value in document.items()}, "campaign")

    @property
    def begun(self) -> datetime:
        """Return the time at which the campaign began."""
        return datetime.strptime(f"{self.id.split('-')[0]}+0000", "%Y%m%dT%H%M%SZ%z")

    def with_present_builds(self) -> "Campaign":
        """Return the campaign with builds for the paths of earlier journals. Raise errors as `lasting_kafka` does."""
        variants = tuple(lasting(self.variants))
        if variants == self.variants:
            return self
        digests = tuple(resolve(each).topology_digest for each in variants)
        return replace(self, variants=variants, topology_digests=digests)

    def differences(self, other: "Campaign") -> list[str]:
        """Return in which runs another campaign differs, a line for each difference; empty for the same runs."""
        names = ["command", "repeats", "seed", "store", "threshold"]
        # The measures of a named comparison, and the defaults of an earlier version, are no option.
        if self.command != COMMAND and not (named_no_measure(self) and named_no_measure(other)):
            names.append("measures")
        found = [
            f"{name}: {getattr(self, name)} there, {getattr(other, name)} here"
            for name in names
            if getattr(self, name) != getattr(other, name)
        ]
        there, here = ({each.label: each for each in one.variants} for one in (self, other))
        for what, labels in (
            ("only there", [label for label in there if label not in here]),
            ("only here", [label for label in here if label not in there]),
        ):
            if labels:
                found.append(f"variants {what}: {', '.join(labels)}")
        found += _field_differences((there[label], here[label]) for label in there if label in here)
        if not found and list(there) != list(here):
            found.append(f"the order of the variants: {', '.join(there)} there, {', '.join(here)} here")
        if not found and self.topology_digests != other.topology_digests:
            found.append("the topology of a variant")
        if not found and self.groups != other.groups:
            found.append("how often the scenarios are run, or which are compared in pairs")
        if not found and (new := [name for name, build in self.builds.items() if other.builds.get(name) != build]):
            found.append(f"another build: {', '.join(new)}")
        return found


def _field_differences(pairs: Iterable[tuple[Variant, Variant]]) -> list[str]:
    """Return a line for each field's pair of different values, with the labels of the variants that have this pair."""
    labels: dict[str, list[str]] = {}
    for there, here in pairs:
        for each in fields(Variant):
            before, now = getattr(there, each.name), getattr(here, each.name)
            in_other_order = each.name == "settings" and there.values == here.values
            if before != now and not in_other_order:
                text = f"{each.name}: {_only(before, now)} there, {_only(now, before)} here"
                labels.setdefault(text, []).append(there.label)
    return [f"{text}, of {', '.join(those)}" for text, those in labels.items()]


def _only(value: object, other: object) -> str:
    """Return a field's value in words; of a tuple, the elements that the other value does not have."""
    if isinstance(value, tuple) and isinstance(other, tuple):
        return " ".join(map(str, (each for each in value if each not in other))) or "nothing"
    return "the default" if value is None else str(value)


def new_campaign(
    command: str,
    variants: Sequence[Variant],
    repeats: int,
    seed: int,
    *,
    store: str | None = None,
    measure_names: Sequence[str] = (),
    threshold: float = ComparisonRule().threshold,
    groups: Sequence[VariantGroup] = (),
) -> Campaign:
    """Return a campaign, resolved and checked, with its builds in the cache. Raise `UsageError` or `SoftwareError`."""
    check_labels(variants)
    variants = lasting(variants)
    resolved = [resolve(variant) for variant in variants]
    if repeats < 1:
        raise UsageError(f"{repeats} repeats: at least 1 is needed")
    require_comparable(command, measure_names, threshold)
    # Runs have values by today's names, and a measure that is named twice is one test of the family.
    names = tuple(dict.fromkeys(find_measure(name).name for name in measure_names))
    names = names or default_measures(command, variants)
    location = open_store_for_runs(store).location
    identity = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{command}-{secrets.token_hex(3)}"
    return Campaign(
        identity,
        command,
        tuple(variants),
        repeats,
        seed,
        location,
        names,
        threshold,
        tuple(each.topology_digest for each in resolved),
        tuple(groups),
        builds_of(each.topology for each in resolved),
    )


def require_comparable(command: str, measure_names: Sequence[str], threshold: float) -> None:
    """Raise `UsageError` for a measure that does not exist, or that the command does not compare; or a threshold."""
    try:
        for name in measure_names:
            if not find_measure(name).compared and command in COMPARING:
                raise ValueError(f"{name} says nothing of better or worse, `testbed sweep` tells it: leave it out")
        ComparisonRule(threshold=threshold)
    except ValueError as error:
        raise UsageError(str(error)) from error


def lasting(variants: Iterable[Variant]) -> list[Variant]:
    """Return variants that mean the same elsewhere and later; each path is read once. Raise as `lasting_kafka` does."""
    build = cache(lasting_kafka)

    def setting(word: str) -> str:
        same = not word.startswith(TARGET) or word == f"{TARGET}{SAME}"
        return word if same else f"{TARGET}{build(word.removeprefix(TARGET))}"

    return [
        replace(
            each,
            settings=tuple(map(setting, each.settings)) if each.experiment == UPGRADE else each.settings,
            topology=lasting_topology(each.topology),
            kafka=build(each.kafka),
        )
        for each in variants
    ]


def lasting_kafka(text: str | None) -> str | None:
    """Return the permanent version of a Kafka. A tarball or folder is copied into the cache.

    So all runs have this build, although it may be built again meanwhile. Raise `UsageError` when the text names none,
    and `SoftwareError` when it is not available.
    """
    if not text:
        return text
    source = parse_source(text)
    return source.text if source.is_permanent else kafka_release(source).version


def lasting_topology(text: str | None) -> str | None:
    """Return a topology as a command in another folder has to name it: a file's path is absolute, a name stays."""
    return str(Path(text).absolute()) if text is not None and is_file(text) else text


def require_enough_pairs(campaign: Campaign) -> None:
    """Raise `UsageError` for too few pairs to tell a small regression (`qualify`) or a large one from chance."""
    comparisons, repeats = _paired(campaign)
    fewest = fewest_pairs(campaign) if campaign.command == QUALIFY else FEWEST_SEPARATED
    if repeats is not None and repeats < fewest:
        raise UsageError(
            f"{repeats} pairs: among {comparisons} comparisons no regression would differ from chance; "
            f"take at least {fewest} pairs, or fewer measures (--measure move-seconds)"
        )


def large_only(campaign: Campaign) -> str | None:
    """Return a note when a comparison has so few pairs that only a large regression can be told; otherwise None."""
    comparisons, repeats = _paired(campaign)
    fewest = fewest_pairs(campaign)
    if campaign.command != "compare" or repeats is None or repeats >= fewest:
        return None
    return (
        f"{repeats} pairs among {comparisons} comparisons: only a change of 25 % or more differs from chance; "
        f"{fewest} pairs show smaller ones, and so do fewer measures (--measure move-seconds)"
    )


def _paired(campaign: Campaign) -> tuple[int, int | None]:
    """Return how many comparisons there are, and the fewest pairs of any; None without a comparison."""
    paired = [group for group in campaign.variant_groups if group.pairs]
    comparisons = sum(len(group.pairs) for group in paired) * len(campaign.measures)
    return comparisons, min((group.repeats for group in paired), default=None)


def fewest_pairs(campaign: Campaign) -> int:
    """Return the number of pairs with which the campaign can tell a small regression from chance."""
    return fewest_pairs_to_tell(_paired(campaign)[0])


def fewest_pairs_to_tell(comparisons: int) -> int:
    """Return the number of pairs with which a small but clear regression is significant among so many comparisons."""
    rule = ComparisonRule()
    # When all n pairs agree, the probability of that by chance is 2⁻ⁿ.
    return max(rule.fewest_pairs, math.ceil(math.log2(max(comparisons, 1) / rule.family)))
