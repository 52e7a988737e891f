"""The checks; each file has what belongs to one thing, and `catalogue` lists them all."""
