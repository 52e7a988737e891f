"""The commands of `testbed`, one module each; `testbed.cli.command` says what a module has."""
