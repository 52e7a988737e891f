"""The command line `testbed …`: one module for each command. Other packages do the work."""
