"""The testbed's software: Kafka releases, the node image, class-data archives.

Each is made once, cached and verified by digest.
Standard library only: set-up uses this package before the project's environment exists.
"""
