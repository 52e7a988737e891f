"""The report's tables of a move's phases, of the model of its traffic, and of its clients."""

from collections.abc import Sequence

from results.contract.manifest import LiveLoad, Manifest, Move
from results.contract.verdict import Direction
from results.criteria.measures import ClientView, MoveMeasures
from results.criteria.model import bottlenecks, expected_of
from results.criteria.quantities import change_percent, rate, size
from results.render import NOTHING

KIND_WORDS = {"produce": "Produce", "consume": "Fetch"}


def phase_rows(measures: MoveMeasures) -> list[tuple[str, ...]]:
    """Return the phases: which quota, from when to when, how long; empty for a move with but one."""
    if len(measures.phases) < 2:
        return []
    rows: list[tuple[str, ...]] = []
    for number, phase in enumerate(measures.phases, 1):
        seconds = phase.end_s - phase.begin_s
        known = "" if phase.leaders_known else "who leads is not known: what is sent is not judged"
        quota = rate(phase.quota_bytes_per_s)
        rows.append((str(number), quota, f"{phase.begin_s:+.1f} s", f"{phase.end_s:+.1f} s", f"{seconds:.1f} s", known))
    return rows


def expected_rows(measures: MoveMeasures, move: Move) -> list[tuple[str, ...]]:
    """Return what each end had to carry, what is left there for catching up, by the model and by KIP-73, and what was.

    Of the quota that the move began with; observed in the steady part, less the in-sync traffic as declared.
    """
    quota = move.quota_bytes_per_s
    rows: list[tuple[str, ...]] = []
    for rates in measures.phases[0].rates if measures.phases else ():
        expected = expected_of(move, rates.host, rates.direction)
        if expected is None:
            continue
        listed = rates.steady_bytes_per_s
        seconds = expected.seconds(quota)
        binds = not move.nic_bound and (rates.host, rates.direction) in bottlenecks(move, quota)
        rows.append(
            (
                f"{rates.host} {rates.direction}",
                size(expected.bytes),
                rate(expected.in_sync_bytes_per_s),
                _left(quota - expected.in_sync_bytes_per_s),
                _left(quota - move.inbound_bytes_per_s),
                NOTHING if listed is None else rate(max(0.0, listed - expected.in_sync_bytes_per_s)),
                NOTHING if listed is None else f"{listed / quota:.3f}",
                "never" if seconds == float("inf") else f"{seconds:.1f} s",
                "binds" if binds else "",
            )
        )
    return rows


def _left(bytes_per_s: float) -> str:
    return rate(bytes_per_s) if bytes_per_s > 0 else "nothing"


def duration_rows(measures: MoveMeasures, move: Move) -> list[tuple[str, str]]:
    """Return the duration, the model's prediction and that of KIP-73's formula."""
    moved = measures.moved_s if measures.moved_s is not None else measures.throttled_s
    rows = [("Observed", "not observed" if moved is None else f"{moved:.1f} s")]
    if move.model_seconds is not None:
        rows.append(("All listed traffic", against(move.model_seconds, moved)))
    elif move.expected:
        rows.append(("All listed traffic", f"no prediction: {move.model_why or 'the run did not say why'}"))
    rows.append(("KIP-73's MoveTime", against(measures.kip73_s, moved) if measures.kip73_s > 0 else "never ends"))
    rows.append(("Done seen at", "not seen" if measures.done_s is None else f"+{measures.done_s:.1f} s"))
    return rows


def against(predicted_s: float, moved_s: float | None) -> str:
    """Return a prediction, and how far it is from the time that the move took, if that is known."""
    error = "" if not moved_s else f", {change_percent(predicted_s / moved_s)}"
    return f"{predicted_s:.1f} s{error}"


def client_rows(views: Sequence[ClientView]) -> list[tuple[str, ...]]:
    """Return latencies before, during and after the move, and the longest silence of any client."""
    return [
        (
            f"{KIND_WORDS[view.kind]}, {view.part}",
            f"{view.records:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"),
            latency(view.p50_us),
            latency(view.p99_us),
            latency(view.p999_us),
            _silence(view.silence_s),
        )
        for view in views
    ]


def latency(microseconds: float | None) -> str:
    """Return a latency for people."""
    if microseconds is None:
        return NOTHING
    milliseconds = microseconds / 1000
    return f"{milliseconds / 1000:.2f} s" if milliseconds >= 999.5 else f"{milliseconds:.3g} ms"


def _silence(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    return f"{seconds:.1f} s" if seconds > 0 else "below 1 s"


def nic_uses(manifest: Manifest, measures: MoveMeasures) -> dict[tuple[str, Direction], tuple[float | None, ...]]:
    """Return (host, direction) of every measured NIC → mean and highest second over the move; empty without a move."""
    if measures.burden is None:
        return {}
    known = {(use.host, use.direction): (use.mean_bytes_per_s, use.peak_bytes_per_s) for use in measures.burden.nics}
    return {(nic.host, nic.direction): known.get((nic.host, nic.direction), (None, None)) for nic in manifest.nics}


def load_rows(live: LiveLoad | None) -> list[tuple[str, ...]]:
    """Return the processes of the load."""
    if live is None:
        return []
    return [
        (
            process.name,
            rate(process.declared_bytes_per_s) if process.declared_bytes_per_s else "reads",
            f"{process.sent:,} of {process.due:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"),
            "yes" if process.held else process.why or "no",
            NOTHING if process.cpu_cores is None else f"{process.cpu_cores:.2f} cores",
        )
        for process in live.processes
    ]
