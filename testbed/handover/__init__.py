"""Handovers: changes of a partition's leader on shared storage, and their steps, found in the brokers' logs.

Experimental: the patterns of the log lines follow AutoMQ's source. AutoMQ 1.7.3 logged all of them (docs/automq.md).
"""
