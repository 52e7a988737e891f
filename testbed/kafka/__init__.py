"""Kafka's nodes, and the administration of a cluster."""
