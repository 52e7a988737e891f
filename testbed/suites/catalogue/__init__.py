"""The suites; each module here is one."""
