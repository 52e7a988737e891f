"""KIP-455 step by step, every scenario of it; what differs between its text and KRaft is in docs/kip455.md."""

from testbed.suites.suite import Case, Suite

_SMOKE = ("example", "cancel", "rows")
# What needs another topology comes last: it is brought up for it.
_ALL = (
    *_SMOKE,
    "override",
    "override-overlapping",
    "override-cancelled",
    "override-back",
    "override-same",
    "replication-factor",
    "preferred-leader",
    "partitions-added",
    "topic-deleted",
    "errors",
    "target-dead",
    "leader-dies",
    "many",
    "override-failover",
)


def _cases(names: tuple[str, ...]) -> tuple[Case, ...]:
    return tuple(Case(name, f"kip455-{name}") for name in names)


SUITE = Suite(
    "kip455",
    "Does a reassignment go through the states that KIP-455 and KRaft's rules say, whatever happens meanwhile?",
    "kip455_test.py",
    {"smoke": _cases(_SMOKE), "ci": _cases(_ALL), "release": _cases(_ALL)},
)
