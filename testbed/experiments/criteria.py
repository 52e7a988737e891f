"""Names of the criteria that several experiments share; each experiment names its own in its file of the catalogue.

The criteria of every move need not be named: records, configuration, leaders, quotas, logs and preconditions.
"""

BOUNDS = ("throttled-window", "long-window-bound")
"""What a throttle promises of any move, whatever else happens to it."""
LOAD = ("load-rate-sustained", "live-records")
"""Of a move under load: it must be under load, and its records are read back."""
RATES_UNDER_LOAD = (
    *BOUNDS,
    "steady-mean",
    "control-unthrottled",
    "broker-rate-agrees",
    "duration-model",
    "bottleneck-as-modelled",
)
"""Of a move with one quota. Under load a NIC carries what clients write and read: its bytes are not those of logs."""
RATES = (*RATES_UNDER_LOAD, "nic-conservation")
"""Of a move with one quota that no client writes to."""
SCALED = ("tiered-local-fraction", "copied-bytes", "store-requests", "p99-recovery")
"""Of a broker that is added or removed."""
STEPS = ("scenario-steps", "trace-whole", "polling-agrees")
"""Of KIP-455's scenarios."""
