"""Reassignments after KIP-455, throttled after KIP-73: plan, throttle, journal, driver."""
