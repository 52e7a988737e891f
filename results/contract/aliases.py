"""Aliases: names in stored runs of earlier schema versions, and the names that replace them. Pure.

A stored name is read under its new name for one schema version; nothing writes an old name.
"""

CRITERIA = {
    "isr-kept": "no-isr-shrink",
    "settled": "rate-after-throttle-change",
    "binding": "bottleneck-as-modelled",
    "mean-bound": "long-window-bound",
    "p99-back": "p99-recovery",
    "load-held": "load-rate-sustained",
    "local-share": "tiered-local-fraction",
    "copied-once": "no-double-copy",
    "stuck-noticed": "stall-detected",
}
"""Finding before schema 3 → criterion."""


INCIDENT_FIELDS = {"practice": "variant", "practice_summary": "variant_summary", "fails": "expected_failures"}
"""Field of a manifest's incident before schema 3 → field."""
INCIDENT_VARIANTS = {"faulty": "broken", "remedy": "fixed"}


def criterion_name(stored: str) -> str:
    """Return today's name of a criterion that a stored run names."""
    return CRITERIA.get(stored, stored)


_RATES = (
    "throttled-window",
    "long-window-bound",
    "steady-mean",
    "control-unthrottled",
    "broker-rate-agrees",
    "nic-conservation",
    "duration-model",
    "bottleneck-as-modelled",
)
_LOADED = tuple(name for name in _RATES if name != "nic-conservation")
_LOAD = ("load-rate-sustained", "live-records")
_SCALED = ("tiered-local-fraction", "copied-bytes", "store-requests", "p99-recovery")
_BOUNDS = ("throttled-window", "long-window-bound")
EXPERIMENTS = {
    "kip73-one-to-two": (*_RATES, "no-isr-shrink"),
    "kip73-two-to-one": (*_RATES, "no-isr-shrink"),
    "kip73-bootstrap": (*_RATES, "no-isr-shrink"),
    "kip73-two-node": _RATES,
    "kip73-two-node-produce": (*_LOADED, "no-isr-shrink", *_LOAD),
    "kip73-one-to-two-produce": (*_LOADED, "no-isr-shrink", *_LOAD),
    "kip73-two-to-one-produce": (*_LOADED, "no-isr-shrink", *_LOAD),
    "kip73-mixed-volume": (*_LOADED, "no-isr-shrink", *_LOAD),
    "kip73-live-change": (
        *_BOUNDS,
        "rate-after-throttle-change",
        "control-unthrottled",
        "duration-model",
        "throttle-changed",
    ),
    "kip73-stuck": (*_BOUNDS, "duration-model", "stall-detected", "no-isr-shrink", *_LOAD),
    "kip73-bounce": (*_BOUNDS, "brokers-restarted"),
    "kip73-upgrade": (*_BOUNDS, "brokers-restarted"),
    "kip73-nic-bound": ("broker-rate-agrees", "nic-bound"),
    "kip73-fetch-size": ("first-window", *_BOUNDS, "control-unthrottled", "nic-conservation"),
    "kip435-exchange": ("control-unthrottled", "no-isr-shrink", "replicas-fetching", *_LOAD),
    "kip435-rf4": ("no-isr-shrink", "replicas-fetching", "in-sync-unbounded", *_LOAD),
    "s3-reassign": ("tiered-local-fraction", "copied-bytes", "duration-formula", "store-requests"),
    "scale-out": _SCALED,
    "scale-in": _SCALED,
    "cold-read": ("tiered-local-fraction", "cold-read", "store-requests"),
}
"""Experiment before schema 3 → the criteria that judge its runs."""
FAMILIES = {"kip455-": ("scenario-steps", "trace-whole", "polling-agrees"), "incident-": ()}
"""The same for every experiment whose name begins so."""


def criteria_of_experiment(experiment: str) -> tuple[str, ...] | None:
    """Return the criteria of an experiment whose manifests do not name them; None for one that is not known."""
    family = next((names for prefix, names in FAMILIES.items() if experiment.startswith(prefix)), None)
    return EXPERIMENTS.get(experiment, family)


def known_experiments() -> tuple[str, ...]:
    """Return the names of experiments and families whose manifests need not name criteria."""
    return tuple(sorted([*EXPERIMENTS, *(f"{prefix}…" for prefix in FAMILIES)]))


VALUES_COLUMNS = {"ground": "environment_details", "disturbed": "noisy"}
"""Column of the values table before schema 3 → column."""

MEASURES = {
    "between-brokers": "inter-broker-bytes",
    "of-formula": "time-vs-log-size",
    "bound-11s": "quota-bound-11s",
    "nic-peak": "nic-max-1s",
}
"""Measure before schema 3 → measure. A series keeps the id that it has by its measure's first name."""


def measure_name(stored: str) -> str:
    """Return today's name of a measure that a store or a journal names."""
    return MEASURES.get(stored, stored)


def first_measure_name(name: str) -> str:
    """Return the name under which a measure was first stored: the ids of series are made from it."""
    return next((old for old, new in MEASURES.items() if new == name), name)
