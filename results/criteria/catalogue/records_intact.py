"""Every preloaded record is there once, unchanged, in order, at its offset, and on all replicas in sync alike.

A follower appends the leader's batches as they are. So the copy of a log without writes has no fewer bytes than the
leader's log, and never becomes smaller. What it has in addition are records that are read back.
"""

from collections.abc import Iterator

import numpy as np

from results.contract.texts import counted, shortened
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion, has_any_move, has_steps
from results.criteria.findings import finding
from results.criteria.quantities import US
from results.criteria.run_view import RunView
from results.criteria.step_measures import UNREAD

SHOWN = 3


def _has_records(run: RunView) -> bool:
    """Return whether records were written before data moved. A scenario that deletes its topic reads none back."""
    if not has_steps(run):
        return has_any_move(run)
    return run.manifest.facts.records is not None or bool(run.series.events_of((UNREAD,)))


def _end_us(run: RunView) -> int | None:
    """Return when a throttled move was done by any clock; None where the sizes of its copies are not judged.

    That is where logs change for other reasons: clients write, old segments go to a store, or a broker restarts.
    """
    done = run.series.event_us("move.done")
    changing = run.loaded or run.manifest.parameters.get("storage") == "tiered"
    if run.manifest.move is None or done is None or changing or run.series.event_us("broker.leaving") is not None:
        return None
    # The runner's clock says when the move was done, and a host's clock when its logs were read.
    apart_s = [clock.most_s for clock in run.manifest.clocks]
    if None in apart_s:
        return None
    return done + round(max((each for each in apart_s if each is not None), default=0.0) * US)


def _unlike(run: RunView) -> Iterator[str]:
    """Yield the copies that lack bytes of their leaders' logs, or lost some, of a move that was seen to end."""
    move, series, read_us = run.manifest.move, run.series, _end_us(run)
    if move is None or read_us is None:
        return
    for flow in move.flows:
        if flow.kind != "throttled":
            continue
        originals, copies, looks = (
            series.logs_of(flow.leader),
            series.logs_of(flow.follower),
            series.looked(flow.follower),
        )
        if not len(looks) or looks[-1] < read_us:
            continue
        for place in ((flow.topic, partition) for partition in flow.partitions):
            if place not in originals or place not in copies:
                continue
            name, whole, found = f"{place[0]}-{place[1]}", originals[place][1][-1], copies[place][1]
            if found[-1] < whole:
                yield f"the log of {name} has {found[-1]:.0f} bytes on {flow.follower}, {whole:.0f} on {flow.leader}"
            elif (np.diff(found) < 0).any():
                yield f"the log of {name} became smaller on {flow.follower} while it was copied"


def _expected(run: RunView) -> str:
    """Return what is judged of the run: replicas are compared on disks, sizes where nothing else changes them."""
    on_disks = run.manifest.parameters.get("storage", "disk") == "disk"
    found = "every preloaded record once, unchanged, in order" + (", on all replicas" if on_disks else "")
    return found + ("" if _end_us(run) is None else "; copies as large as the leaders' logs")


def _judge(run: RunView) -> Finding:
    """Return the finding of the records that were read back, and of the logs that hold them."""
    records, unlike = run.manifest.facts.records, list(_unlike(run))
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    wrong = 0 if records is None else records.wrong
    if records is None:
        why = "the records were not read back"
    elif records.expected <= 0 and not wrong:
        why = "no record was preloaded, so none could be lost"
    else:
        short = records.found < records.expected and records.lost == 0
        observed = float(wrong)
        verdict = "pass" if wrong == 0 and not short else "fail"
        if 0 < wrong == records.foreign and not short:
            verdict = "inconclusive"  # a broker that spoils a record has one of the run's less
        why = (
            f"{records.found} of {records.expected} found; {records.lost} lost, "
            f"{records.duplicated} duplicated, {records.corrupt} corrupt; "
            f"{counted(len(records.digest_mismatches), 'partition', 'has')} another digest"
        )
        if records.foreign:
            why += f"; {counted(records.foreign, 'record', 'is')} of other clients"
        if records.reordered:
            why += f"; {records.reordered} after a later record"
        if records.digest_mismatches:
            why += ": " + ", ".join(shortened(records.digest_mismatches, 5))
        if records.first:
            why += "; " + "; ".join(records.first[:SHOWN])
        if records.uncompared:
            verdict = "inconclusive" if verdict == "pass" else verdict
            why += f"; the replicas' logs were not compared: {records.uncompared}"
    if unlike:
        verdict = "fail"
        why += f"; {counted(len(unlike), 'copy', 'lacks')} bytes: " + "; ".join(shortened(unlike, SHOWN))
    return finding(
        "records-intact",
        _expected(run),
        verdict,
        why,
        observed=observed,
        unit="wrong",
        series=("manifest.facts.records", "log.bytes"),
    )


CRITERION = Criterion(
    name="records-intact",
    title="Every record is there",
    section=FACTS,
    judge=lambda run: [_judge(run)],
    needs=_has_records,
    by_name=False,
    of_records=True,
    catches="A move that loses, doubles, changes or reorders a record, or copies a log in part or differently.",
)
