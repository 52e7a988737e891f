"""Each link was shaped as declared from before the run to its end, and still carried its rate where a rate failed.

Nor did anything else use it while data moved, as far as agents see.
"""

from collections.abc import Sequence

from results.contract.network import LinkDifference, NetworkRecord, NicMeasurement, ShapingReading, ratios_text
from results.contract.texts import plural, shortened
from results.contract.verdict import Direction, Finding
from results.criteria.catalogue.nic_measured import NIC_HIGHEST, NIC_LOWEST
from results.criteria.criterion import NETWORK_CHANGED, PRECONDITIONS, Criterion, has_any_move, has_steps
from results.criteria.findings import finding
from results.criteria.foreign_traffic import foreign_finding, foreign_traffic, shared_stores
from results.criteria.run_view import RunView

NAME = NETWORK_CHANGED
EXPECTED = "the declared shaping before and after, and no change in between"
SHOWN = 2
"""Differences of one link in the text; the manifest has all."""


def nics_unchanged(network: NetworkRecord) -> list[Finding]:
    """Return one finding for each link that differed from its declaration; one for all links when none did."""
    found = [_changed(readings) for readings in network.different().values()]
    found += [
        _slower(nic) for nic in network.nics_after if nic.ratio is None or not NIC_LOWEST <= nic.ratio <= NIC_HIGHEST
    ]
    return found or [_unchanged(network)]


def _unchanged(network: NetworkRecord) -> Finding:
    why = f"read back {plural(len(network.readings), 'time')} without a difference; the kernel announced no change"
    if network.nics_after:
        tries = max(len(nic.readings) for nic in network.nics_after)
        why += f"; measured again after the run: {ratios_text(network.nics_after)} of the declared rate"
        why += f", in at most {plural(tries, 'reading')}" if tries > 1 else ""
    return finding(NAME, EXPECTED, "pass", why, observed="no difference", series=("manifest.network",))


def _changed(readings: Sequence[tuple[ShapingReading, LinkDifference]]) -> Finding:
    first, link = readings[0]
    texts = list(dict.fromkeys(difference.found for _reading, difference in readings))
    shown = ", ".join(shortened(texts, SHOWN))
    at_the_end = any(reading.when == "after" for reading, _difference in readings)
    when = f"first seen {first.when} the run, at {first.at}"
    why = f"{link.where}: {shown}; {when}, {'and' if at_the_end else 'not'} after it"
    if first.when == "after":
        why = f"{link.where}: {shown}; seen after the run, not before it"
    return _inconclusive(link.place, link.direction, shown, why)


def _slower(nic: NicMeasurement) -> Finding:
    tried = ", ".join(f"{ratio:.3f}" for ratio in nic.readings)
    where = f"{nic.host} {nic.device} {nic.direction}"
    why = f"{where}: after the run it carried {tried or 'nothing that could be measured'} of its declared payload rate"
    return _inconclusive(nic.host, nic.direction, tried or "not measured", why)


def _inconclusive(place: str, direction: Direction | None, observed: str, why: str) -> Finding:
    return finding(
        NAME,
        EXPECTED,
        "inconclusive",
        why,
        observed=observed,
        host=place,
        direction=direction,
        series=("manifest.network",),
    )


def _judge(run: RunView) -> list[Finding]:
    """Return the findings of all links, of each broker whose NIC something else used, and of each such store."""
    if run.manifest.network is None:
        return []
    foreign = [foreign_finding(host, found) for host in run.brokers if (found := foreign_traffic(run, host))]
    return [*nics_unchanged(run.manifest.network), *foreign, *shared_stores(run)]


CRITERION = Criterion(
    name=NAME,
    title="Network unchanged",
    section=PRECONDITIONS,
    judge=_judge,
    needs=lambda run: has_any_move(run) or has_steps(run),
    by_name=False,
    about_machine=True,
    catches="A NIC that becomes slower or faster while data moves, or carries something else.",
)
