"""`testbed …`: one file for each command, thin; what it does lives elsewhere."""
