"""The prompt of `testbed shell`: hosts, links, topics, moves and faults of a running testbed, by their names."""
