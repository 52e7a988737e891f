"""How the leader of a partition on shared storage changes: the steps of a handover, found in the brokers' logs.

Experimental: the log lines are those of AutoMQ's source; no run of AutoMQ has confirmed them yet (docs/automq.md).
"""
