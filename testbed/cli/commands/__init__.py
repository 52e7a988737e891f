"""The commands; each module here is one."""
