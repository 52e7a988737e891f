"""Reassignments by KIP-455, throttled by KIP-73: plans, planners, driver, batches, monitor, estimate."""
