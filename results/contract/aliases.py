"""Names that stored runs of earlier schema versions have, and the names of today. Pure.

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


def criterion_name(stored: str) -> str:
    """Return today's name of a criterion that a stored run names."""
    return CRITERIA.get(stored, stored)
