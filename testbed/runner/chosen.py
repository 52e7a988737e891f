"""Which measures a series tells and compares where none are named. Pure."""

from collections.abc import Sequence

from results.compare import Measure, measures
from testbed.runner.variant import Variant

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
