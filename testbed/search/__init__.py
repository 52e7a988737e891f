"""The search for incidents: random ones on real brokers, judged by invariants, shrunk to the smallest that fails."""
