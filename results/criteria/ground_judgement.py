"""Was the ground firm: the NICs as declared, the machine idle enough? If not, rates are not judged."""

from collections.abc import Sequence

from results.contract.manifest import Manifest, Move, NicMeasurement
from results.contract.verdict import DIRECTIONS, Direction, Finding, Verdict
from results.criteria.measures import GAP_S, MachineLoad, MoveMeasures
from results.criteria.words import percent, rate

NIC_LOWEST, NIC_HIGHEST = 0.95, 1.02
BUSY_HIGHEST, STEAL_HIGHEST = 0.85, 0.05


def judge_nics(manifest: Manifest, move: Move) -> list[Finding]:
    """Each broker's NIC, each way, measured before the move: see `nics_as_declared`."""
    return nics_as_declared(manifest.nics, move.brokers)


def nics_as_declared(nics: tuple[NicMeasurement, ...], brokers: Sequence[str]) -> list[Finding]:
    """Each broker's NIC, each way, measured before: 0.95 to 1.02 of its declared payload rate."""
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
        why = f"measured at {observed:.3f} of the declared payload rate"
        if NIC_LOWEST <= observed <= NIC_HIGHEST:
            verdict = "pass"
        else:
            why += ": the network is not what the topology declares"
    expected = "the declared payload rate"
    if found:
        declared_bps = found[0].declared_bps
        expected = f"{rate(declared_bps * 1448 / 1514 / 8)} payload ({declared_bps / 1e6:g} Mbit/s)"
    return Finding(
        name="nic-measured",
        host=host,
        direction=direction,
        expected=expected,
        observed=observed,
        unit="of declared",
        tolerance=f"{NIC_LOWEST} to {NIC_HIGHEST}",
        verdict=verdict,
        why=why,
        series=("manifest.nics",),
    )


def judge_load(measures: MoveMeasures, move: Move) -> Finding:
    """The machine's load over any quota window of the move: see `machine_idle`."""
    return machine_idle(measures.load, move.window_s)


def machine_idle(load: MachineLoad, window_s: float) -> Finding:
    """The machine's load over any such window: busy at most 85 %, stolen at most 5 %."""
    window = f"{window_s:g} s"
    verdict: Verdict = "inconclusive"
    busy, steal = load.busy_window_max, load.steal_window_max
    if busy is None or steal is None or load.longest_gap_s is None:
        why = "the machine's load was not sampled"
    elif busy > BUSY_HIGHEST:
        why = f"{percent(busy)} busy over {window}: the machine may have slowed the brokers down"
    elif steal > STEAL_HIGHEST:
        why = f"{percent(steal)} of the CPU was stolen over {window}: other machines disturbed this one"
    elif load.longest_gap_s > GAP_S:
        why = f"no load sample for {load.longest_gap_s:.1f} s"
    else:
        verdict = "pass"
        why = f"at most {percent(busy)} busy and {percent(steal)} stolen over any {window}"
    return Finding(
        name="machine-load",
        host="machine",
        direction=None,
        expected=f"at most {percent(BUSY_HIGHEST)} busy, {percent(STEAL_HIGHEST)} stolen over any {window}",
        observed=busy,
        unit="fraction",
        tolerance="none",
        verdict=verdict,
        why=why,
        series=("cpu.busy", "cpu.steal"),
    )
