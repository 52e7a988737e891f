"""Named comparisons: an experiment with axes, whose variants are interleaved under the same load."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from testbed.experiments.experiment import require_once
from testbed.runner.variant import Variant, product, values_of
from testbed.software.automq import VARIABLE

COMMAND = "run"
"""The command that begins them: `testbed run NAME`."""


LabelledSettings = tuple[str, tuple[str, ...]]
"""A variant's label, and the settings in which it differs from what all variants have."""


@dataclass(frozen=True, slots=True)
class NamedComparison:
    """A named comparison: every combination of the axes' values, `repeats` times. The first variant is the baseline."""

    name: str
    summary: str
    experiment: str
    axes: tuple[str, ...]
    """Axes in the form `NAME=VALUE,…`, as `testbed sweep --set` accepts them."""
    measures: tuple[str, ...]
    repeats: int
    baseline: LabelledSettings | None = None
    """A variant before the combinations, with which all others are compared; None: the first combination."""
    beside: tuple[LabelledSettings, ...] = ()
    """Further variants, after the combinations."""

    def variants(self, given: Sequence[str], profile: str, kafka: str | None, topology: str | None) -> list[Variant]:
        """Return all variants; `given` settings replace the values of an axis. Raise `UsageError` for a wrong one."""
        require_once(given)
        own = _by_name(self.axes)
        if "storage" in own and os.environ.get(VARIABLE, "").strip() and topology is None:
            own["storage"] += f",{SHARED}"
        own |= _by_name(given)
        base = Variant(self.experiment, self.experiment, profile, (), kafka, topology)
        first = self._labelled(base, own, given, [self.baseline] if self.baseline else [])
        combined = dict.fromkeys(_own_software(each) for each in product(base, list(own.values())))
        return [*first, *combined, *self._labelled(base, own, given, self.beside)]

    @property
    def labelled(self) -> Mapping[str, tuple[str, ...]]:
        """Return the settings of every variant that is no combination, by label."""
        return dict([self.baseline, *self.beside] if self.baseline else self.beside)

    def _labelled(
        self, base: Variant, own: Mapping[str, str], given: Sequence[str], wanted: Sequence[LabelledSettings]
    ) -> list[Variant]:
        """Return the variants `wanted`, except where `given` replaces a setting or has several values of one.

        The baseline does not depend on a setting of which `axes` has several values: it stays for that one.
        """
        replaced = _by_name(word for word in given if word not in self.axes)
        several = {name for name, word in replaced.items() if len(values_of(word)) > 1}
        independent = {name for name, word in _by_name(self.axes).items() if "," in word}
        common = {name: word for name, word in own.items() if len(values_of(word)) == 1}
        found = []
        for each in wanted:
            label, settings = each[0], _by_name(each[1])
            unknown = several - independent if each == self.baseline else several
            if not settings.keys() & replaced.keys() and not unknown:
                found.append(replace(base, label=label, settings=tuple((common | settings).values())))
        return found


def _own_software(variant: Variant) -> Variant:
    """Return the variant; one of AutoMQ runs that, whatever release of Apache Kafka the others run."""
    if f"storage={SHARED}" not in variant.settings:
        return variant
    words = [word for word in variant.label.split() if not word.startswith("kafka=")]
    return replace(variant, label=" ".join(words) or f"storage={SHARED}", kafka=None)


def _by_name(words: Iterable[str]) -> dict[str, str]:
    """Return `NAME=VALUE` texts by their names."""
    return {word.partition("=")[0]: word for word in words}


_BATCHING = (
    "move-seconds",
    "in-flight",
    "highest-1s",
    "rest-seconds",
    "nic-max-1s",
    "nic-mean",
    "copied",
    "produce-p99-before",
    "produce-p99",
    "consume-p99-before",
    "consume-p99",
    "produce-gap",
    "consume-gap",
    "under-min-isr",
    "lowest-isr",
)
_STORED = (
    "move-seconds",
    "formula-seconds",
    "time-vs-log-size",
    "inter-broker-bytes",
    "produce-p99-before",
    "produce-p99",
    "longest-ack",
    "produce-gap",
    "busy-cores",
    "store-requests",
)
_STORAGE = "storage=disk,tiered"
"""Both run on the same brokers. AutoMQ is other software on another topology."""
SHARED = "automq"
"""The further storage of every comparison by storage, where a distribution is supplied."""
_ALL = (
    NamedComparison(
        "batching-compare",
        "kip435-exchange at once, in batches, refilled, spread and paced: what each costs, and whom",
        "kip435-exchange",
        ("mode=unbatched,batched,incremental", "reassignment-batch-size=6"),
        _BATCHING,
        5,
        beside=(
            # As many copies to each of the two targets; otherwise a batch may have copies to one alone.
            ("spread", ("mode=batched", "per-broker=3")),
            ("paced", ("mode=incremental", "per-broker=3", "starts=1")),
        ),
    ),
    NamedComparison(
        "batching-tradeoff",
        "kip435-exchange in batches, R × P: how much longer it takes for how much less at once",
        "kip435-exchange",
        ("mode=batched", "partitions=12", "preload=20s", "reassignment-batch-size=1,2,3,6,12", "replicas=1,2"),
        _BATCHING,
        5,
        baseline=("unbatched", ("mode=unbatched",)),
        beside=(
            ("paced P=3", ("mode=incremental", "reassignment-batch-size=3", "starts=1")),
            ("paced P=6", ("mode=incremental", "reassignment-batch-size=6", "starts=1")),
        ),
    ),
    NamedComparison(
        "s3-compare",
        "s3-reassign with logs on disk and tiered, one partition and 100: the seconds, compared with log size ÷ NIC",
        "s3-reassign",
        (_STORAGE, "partitions=1,100", "size=1.2GB"),
        _STORED,
        3,
    ),
    NamedComparison(
        "s3-sizes",
        "s3-reassign with logs on disk and tiered, by size: up to where disk takes minutes",
        "s3-reassign",
        (_STORAGE, "partitions=10", "size=300MB,1GB,3GB"),
        _STORED,
        2,
    ),
    *(
        NamedComparison(
            f"{scaling}-sizes",
            f"{scaling} with logs on disk and tiered, by size: flat for the store, linear for the disk",
            scaling,
            (_STORAGE, "partitions=12", "size=300MB,600MB,1.2GB"),
            (*_STORED, "p99-back"),
            2,
        )
        for scaling in ("scale-out", "scale-in")
    ),
)


def named_comparisons() -> Mapping[str, NamedComparison]:
    """Return all comparisons, by name."""
    return {each.name: each for each in _ALL}
