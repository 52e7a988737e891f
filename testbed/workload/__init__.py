"""What is written to a cluster and read back, every record accounted for."""
