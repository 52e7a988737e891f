"""Partitions that were handed over on shared storage: every step matched, in order. Experimental."""

from statistics import median

from results.contract.handover import AFTER, STEPS, TOLD, HandoverRecord, PartitionHandover, Step
from results.contract.texts import counted, plural, shortened
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import CLOCKS, FACTS, Criterion, has_relocation
from results.criteria.findings import finding

ROUNDING_US = 2_000
"""Two instants in whole milliseconds, of two hosts of one machine, may be so far out of order by rounding alone."""
SERIES = ("manifest.facts.handover",)
ORDER = "handover-order"
_SHOWN = 3


def judge_handover(seen: HandoverRecord | None) -> list[Finding]:
    """Return the findings. A step not matched in every partition is inconclusive: its duration is not known."""
    if seen is None or not seen.partitions:
        why = "the steps were not watched" if seen is None else "no partition was moved"
        return [finding("handover-steps", "known", "inconclusive", why, observed=None, series=SERIES)]
    return [*(_matched(seen, step) for step in STEPS), _order(seen), _shutdown(seen)]


def durations_s(seen: HandoverRecord, step: Step) -> list[float]:
    """Return how long after the command was asked for each partition's step was, of those where it was matched."""
    found = [each.at(step) for each in seen.partitions]
    return [(us - seen.asked_us) / 1e6 for us in found if us is not None]


def partitions_per_s(seen: HandoverRecord) -> float | None:
    """Return partitions handed over a second, from the command until the last was opened and led; None: one was not."""
    ends: list[int] = []
    for each in seen.partitions:
        elected, opened = each.at("elected"), each.at("opened")
        if elected is None or opened is None:
            return None
        ends.append(max(elected, opened))
    took_s = (max(ends) - seen.asked_us) / 1e6 if ends else 0.0
    return len(ends) / took_s if took_s > 0 else None


def _matched(seen: HandoverRecord, step: Step) -> Finding:
    times = durations_s(seen, step)
    missing = [each for each in seen.partitions if each.at(step) is None]
    observed = f"{median(times):.3f} s in the middle, {max(times):.3f} s at most" if times else None
    verdict: Verdict
    if step == "closed" and seen.killed_us is not None:
        verdict, why = _not_closed(seen, seen.killed_us)
        observed = observed or ("closed by no broker" if verdict == "pass" else None)
    elif missing:
        first = next(each for each in missing[0].steps if each.step == step)
        verdict = "inconclusive"
        why = f"not matched in {len(missing)} of {len(seen.partitions)} partitions, {missing[0]} for one: "
        why += f"looked for {first.looked_for}{_unread(seen)}"
    else:
        matched = f"matched in each of {plural(len(times), 'partition')}"
        verdict, why = "pass", f"{matched}; seconds after the command was asked for"
    return finding(f"handover-{step}", TOLD[step], verdict, why, observed=observed, series=SERIES)


def _not_closed(seen: HandoverRecord, killed_us: int) -> tuple[Verdict, str]:
    """Judge whether the old broker was killed in time, before it could close."""
    early = [each for each in seen.partitions if (us := each.at("closed")) is not None and us <= killed_us]
    if early:
        why = "was closed before its broker was killed, so the run cannot show what a kill does"
        return "inconclusive", f"{early[0]} {why}"
    if seen.problems:
        return "inconclusive", f"its broker was killed{_unread(seen)}"
    return "pass", "its broker was killed before it had closed a partition, as intended"


def _order(seen: HandoverRecord) -> Finding:
    wrong, unknown, early = [], 0, 0
    needed = [step for step in STEPS if seen.killed_us is None or step not in ("seen", "closed")]
    for each in seen.partitions:
        found = _disordered(each)
        wrong += [f"{each}: {found}"] if found else []
        unknown += not found and any(each.at(step) is None for step in needed)
        closed, opened = each.at("closed"), each.at("opened")
        early += closed is not None and opened is not None and opened < closed
    verdict: Verdict = "fail" if wrong else "inconclusive" if unknown else "pass"
    if wrong:
        why = "; ".join(shortened(wrong, _SHOWN))
    elif unknown:
        why = f"not all steps of {plural(unknown, 'partition')} were matched"
    else:
        opened_first = f"; {counted(early, 'partition', 'was')} opened before being closed"
        handed = f"{opened_first}: handed over before the upload had ended" if early else ""
        why = f"all of {plural(len(seen.partitions), 'partition')}{handed}"
    return finding(
        ORDER,
        "; ".join(f"{before} before {after}" for before, after in AFTER),
        verdict,
        why,
        observed=None if verdict == "inconclusive" else f"{plural(len(wrong), 'partition')} out of order",
        tolerance=f"{ROUNDING_US // 1000} ms",
        series=SERIES,
    )


def _disordered(each: PartitionHandover) -> str:
    for before, after in AFTER:
        first, then = each.at(before), each.at(after)
        if first is not None and then is not None and then < first - ROUNDING_US:
            return f"{after} {(first - then) / 1e3:.0f} ms before {before}"
    return ""


def _shutdown(seen: HandoverRecord) -> Finding:
    """Judge whether what was closed in order is opened without recovery.

    What a broker had that was killed is recovered.
    """
    wanted = seen.killed_us is None
    unknown = [each for each in seen.partitions if each.clean is None]
    other = [each for each in seen.partitions if each.clean is not None and each.clean is not wanted]
    clean = sum(each.clean is True for each in seen.partitions)
    verdict: Verdict = "inconclusive" if unknown else "pass"
    if not unknown and other:
        # Another broker may have closed the streams of a killed one meanwhile: the report says so.
        verdict = "fail" if wanted else "inconclusive"
    why = f"{clean} of {len(seen.partitions)} had been closed in order, as the new broker found them"
    if unknown:
        why = f"{', '.join(shortened(unknown, 1))}: the new broker logged nothing of it{_unread(seen)}"
    return finding(
        "handover-clean",
        "closed in order, nothing recovered" if wanted else "not closed in order: recovered by the new broker",
        verdict,
        why,
        observed=None if unknown else f"{clean} of {len(seen.partitions)}",
        series=SERIES,
    )


def longest_pause(seen: HandoverRecord) -> tuple[float, str] | None:
    """Return the longest time between two acknowledgements of one partition, in seconds, and which; None: not known."""
    gaps = [(each.longest_gap_s, str(each)) for each in seen.partitions if each.longest_gap_s is not None]
    return max(gaps) if gaps and len(gaps) == len(seen.partitions) else None


def _unread(seen: HandoverRecord) -> str:
    return f"; and {'; '.join(shortened(seen.problems, _SHOWN))}" if seen.problems else ""


CRITERION = Criterion(
    name="handover",
    title="Handover on shared storage",
    section=FACTS,
    judge=lambda run: judge_handover(run.manifest.facts.handover),
    needs=lambda run: has_relocation(run) and run.relocation.storage == "automq",
    by_name=False,
    rests_on_preconditions=True,
    # Two brokers wrote the steps, each with the time of its own clock.
    excused_by=CLOCKS,
    excuses=lambda _run, _precondition, failed: failed.name == ORDER,
    catches="A handover that opens a partition before it is closed, or recovers what was closed in order.",
)
