"""The software a testbed runs on: Kafka releases, the node image, class-data archives.

Made once, kept, verified by digest.
Standard library only: set-up uses this package before the project's environment exists.
"""
