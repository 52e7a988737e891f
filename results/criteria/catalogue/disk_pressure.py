"""The machine's tasks did not wait for a disk long enough to lower a rate."""

from results.criteria.criterion import PRECONDITIONS, Criterion, has_any_move
from results.criteria.own_pressure import kafkas_writes
from results.criteria.run_view import RunView
from results.criteria.standstill import judge_pressure, was_read

NAME, METRIC = "disk-pressure", "pressure.io"


def _needed(run: RunView) -> bool:
    """Return whether disks may not be slow: they may where the topology limits their bandwidth."""
    hosts = run.manifest.topology.document.get("hosts", {})
    limited = any("bandwidth" in (host.get("disk") or {}) for host in hosts.values())
    return has_any_move(run) and was_read(run, METRIC) and not limited


CRITERION = Criterion(
    name=NAME,
    title="Disk fast enough",
    section=PRECONDITIONS,
    judge=lambda run: judge_pressure(run, NAME, METRIC, "a disk", kafkas_writes),
    kafkas_own=lambda run: bool(kafkas_writes(run)),
    needs=_needed,
    by_name=False,
    about_machine=True,
    catches="A disk that is slower than the move, or that another process keeps busy.",
)
