"""Programs of faults that run on hosts: each is one file of standard-library Python."""
