"""KIP-73's test plan, every scenario of it. What each profile proves, and how long it takes, is in docs/ducktape.md."""

from testbed.suites.suite import Case, Suite

SLOW = ("rate=4MB/s",)
"""Less than half of what the experiments take: less to write before and to read back after, and the move is as long."""
LIGHT = ("rate=3MB/s", "inbound=500kB/s")
"""Brokers, clients and fetches of small responses together are to leave the two cores some time."""
_SMOKE = (
    Case("two-to-one-produce", "kip73-two-to-one-produce"),
    Case("live-change", "kip73-live-change"),
    Case("two-node", "kip73-two-node"),
)
_CI = (
    Case("one-to-two", "kip73-one-to-two", SLOW),
    Case("one-to-two-produce", "kip73-one-to-two-produce", LIGHT),
    Case("two-to-one", "kip73-two-to-one", SLOW),
    Case("two-to-one-produce", "kip73-two-to-one-produce", LIGHT),
    Case("bounce", "kip73-bounce"),
    Case("two-node", "kip73-two-node", SLOW),
    Case("two-node-default-fetch", "kip73-two-node", (*SLOW, "fetch=default")),
    Case("two-node-produce", "kip73-two-node-produce", LIGHT),
    Case("live-change", "kip73-live-change"),
    Case("mixed-volume", "kip73-mixed-volume"),
    Case("stuck", "kip73-stuck", ("raised=8MB/s",)),
    Case("bootstrap", "kip73-bootstrap", SLOW),
    Case("nic-bound", "kip73-nic-bound", ("nic=48mbit", "rate=24MB/s")),
    Case("fetch-size", "kip73-fetch-size"),
)
_LONG_S = 1200.0
_SCENARIOS = (
    "one-to-two",
    "one-to-two-produce",
    "two-to-one",
    "two-to-one-produce",
    "bounce",
    "two-node-produce",
    "live-change",
    "mixed-volume",
    "stuck",
    "bootstrap",
    "nic-bound",
    "fetch-size",
)
_RELEASE = (
    *(
        Case(f"two-node-{rate}-{fetch}", "kip73-two-node", (f"rate={rate}MB/s", f"fetch={fetch}"), limit_s=_LONG_S)
        for rate in (2, 5, 10, 20)
        for fetch in ("tuned", "default")
    ),
    *(
        Case(f"two-node-add-{fetch}", "kip73-two-node", ("add=yes", f"fetch={fetch}"), limit_s=_LONG_S)
        for fetch in ("tuned", "default")
    ),
    *(
        Case(f"{name}-{fetch}", f"kip73-{name}", (f"fetch={fetch}",), limit_s=_LONG_S)
        for name in _SCENARIOS
        for fetch in ("tuned", "default")
    ),
)

SUITE = Suite(
    "kip73",
    "Does Kafka keep to its replication quota in every scenario of KIP-73's test plan?",
    "kip73_test.py",
    {"smoke": _SMOKE, "ci": _CI, "release": _RELEASE},
)
