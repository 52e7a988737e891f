"""Handovers: changes of a partition's leader on shared storage, and their steps, found in the brokers' logs.

Experimental: the log lines come from AutoMQ's source; no run of AutoMQ has confirmed them yet (docs/automq.md).
"""
