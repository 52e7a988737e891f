"""The object store's buckets: whether a cluster can use them, and how they are emptied for the next one."""

from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from testbed.objectstore import Credentials, ObjectStore
from testbed.objectstore.store import AUTOMQ_BUCKETS, BUCKETS, TIERED, ObjectStoreError
from tests.objectstore.test_server import plan, topology


class Client:
    """A store with objects by bucket; `broken` buckets are refused."""

    def __init__(self, objects=None, broken=()):
        self.objects = {bucket: list((objects or {}).get(bucket, ())) for bucket in BUCKETS}
        self.broken, self.closed, self.deletions = broken, False, []

    def head_bucket(self, Bucket):
        if Bucket in self.broken:
            raise ClientError({"Error": {"Code": "403", "Message": "Forbidden"}}, "HeadBucket")

    def get_paginator(self, _name):
        def paginate(Bucket):
            there = list(self.objects[Bucket])
            for begin in range(0, max(1, len(there)), 1000):
                part = there[begin : begin + 1000]
                yield {"Contents": [{"Key": key} for key in part]} if part else {}

        return SimpleNamespace(paginate=paginate)

    def delete_objects(self, Bucket, Delete):
        if Bucket in self.broken:
            return {"Errors": [{"Key": "k", "Code": "AccessDenied"}]}
        gone = [each["Key"] for each in Delete["Objects"]]
        self.deletions.append(len(gone))
        self.objects[Bucket] = [key for key in self.objects[Bucket] if key not in gone]
        return {}

    def close(self):
        self.closed = True


def over(client):
    """Return a store whose client is this one."""
    one = topology(1)
    store = ObjectStore(one, plan(one), {}, Credentials("the-access-key", "the-secret-key"))
    store.client = lambda: client
    return store


def test_buckets_that_can_be_reached_are_no_more_than_asked_for():
    client = Client()
    over(client).require_buckets(AUTOMQ_BUCKETS)
    assert client.closed


def test_a_bucket_that_cannot_be_reached_is_named_with_the_store_and_why():
    store = over(Client(broken=AUTOMQ_BUCKETS[1:]))
    with pytest.raises(ObjectStoreError, match=r"cannot be reached: testbed-automq-ops at http://198.*403"):
        store.require_buckets(AUTOMQ_BUCKETS)


def test_a_store_that_does_not_answer_is_an_error_that_names_every_bucket(monkeypatch):
    def no_answer(_self, Bucket):
        raise EndpointConnectionError(endpoint_url="http://198.19.0.13:9000")

    monkeypatch.setattr(Client, "head_bucket", no_answer)
    with pytest.raises(ObjectStoreError, match="testbed-automq-data .*; testbed-automq-ops"):
        over(Client()).require_buckets(AUTOMQ_BUCKETS)


def test_every_object_is_removed_in_portions_that_the_store_takes():
    """Objects of tiered logs stayed: in a long campaign those of every run filled the disk."""
    data, ops = AUTOMQ_BUCKETS
    client = Client({data: [f"key{number}" for number in range(2300)], ops: ["one"], TIERED: ["t-0.log"]})
    over(client).empty_buckets()
    assert client.objects == {bucket: [] for bucket in BUCKETS}
    assert sorted(client.deletions) == [1, 1, 300, 1000, 1000]


def test_a_bucket_that_cannot_be_emptied_is_an_error():
    data, _ops = AUTOMQ_BUCKETS
    with pytest.raises(ObjectStoreError, match="bucket testbed-automq-data cannot be emptied: .*AccessDenied"):
        over(Client({data: ["k"]}, broken=(data,))).empty_buckets()
