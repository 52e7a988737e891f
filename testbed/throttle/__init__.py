"""KIP-73's replication throttle: set, kept in a journal, in force, restored, recovered; and its model."""
