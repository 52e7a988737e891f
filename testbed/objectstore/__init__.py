"""The object store of a testbed: real MinIO servers on separate hosts with shaped NICs."""

from testbed.objectstore.server import Credentials
from testbed.objectstore.store import BUCKETS, ObjectStore

__all__ = ["BUCKETS", "Credentials", "ObjectStore"]
