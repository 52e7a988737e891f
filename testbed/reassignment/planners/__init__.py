"""Plans made rather than written: add brokers, drain brokers, change the replication factor, spread over racks."""
