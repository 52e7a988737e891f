"""Each NIC, each way, was measured before the move at its declared rate."""

from collections.abc import Sequence

from results.contract.manifest import NicMeasurement
from results.contract.verdict import DIRECTIONS, Direction, Finding, Verdict
from results.criteria.criterion import PRECONDITIONS, Criterion, has_any_move
from results.criteria.findings import finding
from results.criteria.quantities import PAYLOAD, rate

NIC_LOWEST, NIC_HIGHEST = 0.95, 1.02
"""An idle NIC reads 0.997 to 1.001. Other traffic may take 2 % (`MOST` in testbed/network/measure.py), and one frame
more or less is at most 1 %. The rest is chosen. Frames of 9000 bytes (1.038) and offloaded segments (1.045) are above
it. A NIC that is slower by less than 5 % is not found."""


def nics_as_declared(nics: tuple[NicMeasurement, ...], brokers: Sequence[str]) -> list[Finding]:
    """Judge each broker's NIC, each way, measured before: 0.95 to 1.02 of its declared payload rate."""
    return [_nic(nics, host, direction) for host in brokers for direction in DIRECTIONS]


def _nic(nics: tuple[NicMeasurement, ...], host: str, direction: Direction) -> Finding:
    found = [n for n in nics if n.host == host and n.direction == direction]
    ratios = [n.ratio for n in found if n.ratio is not None]
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if not found:
        why = "the NIC was not measured before the move"
    elif len(ratios) < len(found):
        why = "the measurement of the NIC did not succeed"
    else:
        observed = max(ratios, key=lambda r: abs(r - 1))
        why = f"measured at {observed:.3f} of the declared payload rate{_readings(found)}"
        if NIC_LOWEST <= observed <= NIC_HIGHEST:
            verdict = "pass"
        else:
            why += ": the NIC is off its rate, the network is not what the topology declares"
    expected = "the declared payload rate"
    if found:
        declared_bps = found[0].declared_bps
        expected = f"{rate(declared_bps * PAYLOAD / 8)} payload ({declared_bps / 1e6:g} Mbit/s)"
    return finding(
        "nic-measured",
        expected,
        verdict,
        why,
        observed=observed,
        unit="of declared",
        tolerance=f"{NIC_LOWEST} to {NIC_HIGHEST}",
        host=host,
        direction=direction,
        series=("manifest.nics",),
    )


def _readings(nics: Sequence[NicMeasurement]) -> str:
    several = [nic for nic in nics if len(nic.readings) > 1]
    return "".join(f"; {len(n.readings)} readings: {', '.join(f'{r:.3f}' for r in n.readings)}" for n in several)


CRITERION = Criterion(
    name="nic-measured",
    title="NIC as declared",
    section=PRECONDITIONS,
    judge=lambda run: nics_as_declared(run.manifest.nics, (*run.brokers, *run.stores)),
    needs=has_any_move,
    by_name=False,
    about_machine=True,
    catches="A network that is slower or faster than the topology declares.",
)
