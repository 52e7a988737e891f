"""The checks; each file has the checks of one subject, and `catalogue` lists them all."""
