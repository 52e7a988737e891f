"""The commands of `testbed`, one module each."""
