"""The load: producers and consumers as processes, and the account of every record."""
