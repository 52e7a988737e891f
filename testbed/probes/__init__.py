"""Probes that sample once a second, on each host and on the machine. A probe never changes its subject."""
