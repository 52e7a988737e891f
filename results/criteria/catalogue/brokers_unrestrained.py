"""Nothing outside of Kafka stopped, limited or ended a broker while data moved, filled its disk, or ended its store.

A broker that was stopped stands still on an idle machine. What it does not do then is no defect of Kafka. A KIP-455
scenario is judged from its first step on; it ends brokers itself, and says so.
"""

from results.contract.verdict import Finding
from results.criteria.criterion import BROKERS_UNRESTRAINED, PRECONDITIONS, Criterion, has_any_move, has_steps
from results.criteria.findings import finding
from results.criteria.restraint import METRICS, Restraint, held_back, unexplained_ends, was_read
from results.criteria.run_view import RunView

EXPECTED = "nothing outside of Kafka holds a broker back"


def _judge(run: RunView) -> list[Finding]:
    """Return one finding for each broker that was held back; one for all when none was, and none without a reading.

    A server of the object store has one as well. The series of a finding are those that say what held it back:
    `logs-clean` looks for a full disk.
    """
    if found := held_back(run):
        return [_held_back(host, why) for host, why in found.items()]
    if not was_read(run):
        return []
    why = "; ".join(["no reading and no log says that something held a broker back", *unexplained_ends(run)])
    return [finding(BROKERS_UNRESTRAINED, EXPECTED, "pass", why, observed="nothing", series=METRICS)]


def _held_back(host: str, found: list[Restraint]) -> Finding:
    return finding(
        BROKERS_UNRESTRAINED,
        EXPECTED,
        "inconclusive",
        f"{host}: {'; '.join(each.why for each in found)}",
        observed=found[0].why,
        host=host,
        series=tuple(dict.fromkeys(each.series for each in found)),
    )


CRITERION = Criterion(
    name=BROKERS_UNRESTRAINED,
    title="Brokers not held back",
    section=PRECONDITIONS,
    judge=_judge,
    needs=lambda run: has_any_move(run) or has_steps(run),
    by_name=False,
    about_machine=True,
    catches="Somebody who stops a broker, or limits it, while data moves.",
)
