"""Names of the criteria that several experiments share. Each experiment names its own criteria in its catalogue file.

An experiment need not name the criteria of every move: records, configuration, leaders, quotas, logs, preconditions.
"""

BOUNDS = ("throttled-window", "long-window-bound")
"""Criteria of any throttled move, whatever else happens during it."""
LOAD = ("load-rate-sustained", "live-records")
"""Criteria of a move under load: the load holds its rate, and its records are read back."""
PROTECTED = (*LOAD, "clients-protected")
"""The same where the partitions move back afterwards: clients do not wait for what the throttle holds back."""
RATES = (
    *BOUNDS,
    "listed-partitions-throttled",
    "steady-mean",
    "control-unthrottled",
    "broker-rate-agrees",
    "duration-model",
    "bottleneck-as-modelled",
    "nic-conservation",
    "reassignment-metrics",
)
"""Criteria of a move with one quota."""
SCALED = ("tiered-local-fraction", "copied-bytes", "store-requests", "s3-seconds", "p99-recovery")
"""Criteria of an added or removed broker."""
STEPS = ("scenario-steps", "trace-whole", "polling-agrees")
"""Criteria of KIP-455's scenarios."""
