"""KIP-73's replication throttle: configuration, journal, restore, recovery, and its model."""
