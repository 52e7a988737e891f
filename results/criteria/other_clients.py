"""Changes of the cluster by other clients: they leave failures open that they may explain. Pure.

They are read only where a criterion failed, so no run has a finding of them that passes. Brokers answered a request for
each: what a controller writes by itself is none of them.
"""

import re
from collections.abc import Sequence, Set

from results.contract.cluster import ChangeKind, ClusterChange
from results.contract.logs import HostLog
from results.contract.texts import and_more, plural
from results.contract.verdict import Finding
from results.criteria.criterion import CLUSTER_CHANGED, Criterion
from results.criteria.findings import finding, not_judged
from results.criteria.quantities import US, at

LOGS_CLEAN = "logs-clean"


def finding_of(changes: Sequence[ClusterChange], started_us: int | None) -> list[Finding]:
    """Return the finding of changes by other clients; empty without a change."""
    if not changes:
        return []
    first = min(changes, key=lambda each: (each.kind == "topic", each.ts_us))
    when = "" if started_us is None else f" at {at((first.ts_us - started_us) / US)}"
    why = "; ".join([f"another client changed the cluster: {first.what}{when}", *and_more(len(changes) - 1, "change")])
    expected = "no other client changes configurations, topics or assignments while data moves"
    observed = plural(len(changes), "change")
    return [
        finding(CLUSTER_CHANGED, expected, "inconclusive", why, observed=observed, series=("manifest.cluster",)),
    ]


def left_open(
    criterion: Criterion,
    found: Sequence[Finding],
    changes: Sequence[ClusterChange],
    others: Sequence[Finding],
    logs: Sequence[HostLog],
) -> list[Finding]:
    """Return a criterion's findings, and leave those open that fail by what another client may have changed.

    A log is left open whose errors all name partitions that another client reassigned: of one that leaves a broker and
    comes back at once, the broker logs an ERROR.
    """
    moved = {log.host for log in logs if _errors_name(log, {change.partition for change in changes} - {""})}
    explains, of_logs = _explain(criterion, {change.kind for change in changes}), criterion.name == LOGS_CLEAN
    explained = [each.verdict == "fail" and (explains or (of_logs and each.host in moved)) for each in found]
    return [not_judged(each, others) if why else each for each, why in zip(found, explained, strict=True)]


def _explain(criterion: Criterion, kinds: Set[ChangeKind]) -> bool:
    if criterion.of_records or criterion.name == LOGS_CLEAN:  # nothing else loses records or makes errors
        return "deletion" in kinds
    return bool(kinds - {"topic"}) or (bool(kinds) and criterion.of_nic_bytes)


def _errors_name(log: HostLog, partitions: Set[str]) -> bool:
    """Return whether each error of a log names one of the partitions.

    A line that counts several is the first of lines with other numbers, and a log may have more lines than are stored.
    """
    errors = [line for line in log.findings if line.level != "WARN"]
    names = re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, partitions))})(?![\w-])")
    known = bool(errors and partitions) and not log.more
    return known and all(each.level == "ERROR" and each.count == 1 and names.search(each.text) for each in errors)
