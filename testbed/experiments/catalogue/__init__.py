"""The experiments; each module here is one."""
