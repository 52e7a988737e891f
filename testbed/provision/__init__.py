"""Provisioning: hosts as containers of one node image, found by their labels."""
