"""Kafka as the testbed sees it: brokers, and the administration of what runs on them."""
