"""What is checked of a cluster whose partitions lie in the object store, and how its buckets are emptied."""

from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from testbed.objectstore.store import BUCKETS as ALL_BUCKETS
from testbed.objectstore.store import TIERED
from testbed.provision.kafka_nodes import BUCKETS, NotAsDeclared, compared, empty_buckets, require_buckets

GIVEN = {
    "elasticstream.enable": "true",
    "autobalancer.controller.enable": "false",
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
}


def test_a_broker_that_goes_by_what_it_was_given_differs_in_nothing():
    assert compared("b1", GIVEN, GIVEN) == ([], [])


def test_each_setting_that_is_otherwise_is_named_with_both_values():
    wrong, unknown = compared("b1", GIVEN, {**GIVEN, "autobalancer.controller.enable": "true"})
    assert wrong == ["b1 has autobalancer.controller.enable=true, was given false"]
    assert unknown == []


def test_what_a_broker_does_not_tell_is_not_taken_for_right():
    told = {key: value for key, value in GIVEN.items() if "autobalancer" not in key}
    assert compared("b1", GIVEN, told) == ([], ["autobalancer.controller.enable"])


class Client:
    """A store with objects by bucket; `broken` buckets are refused."""

    def __init__(self, objects=None, broken=()):
        self.objects = {bucket: list((objects or {}).get(bucket, ())) for bucket in ALL_BUCKETS}
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
    store = SimpleNamespace(client=lambda: client, endpoint="http://198.19.0.13:9000")
    return SimpleNamespace(name="automq", objectstore=store)


def test_buckets_that_can_be_reached_are_no_more_than_asked_for():
    client = Client()
    require_buckets(over(client))
    assert client.closed


def test_a_bucket_that_cannot_be_reached_is_named_with_the_store_and_why():
    with pytest.raises(NotAsDeclared, match=r"automq cannot start: bucket testbed-automq-ops at http://198.*403"):
        require_buckets(over(Client(broken=BUCKETS[1:])))


def test_a_store_that_does_not_answer_is_told(monkeypatch):
    def nobody(_self, Bucket):
        raise EndpointConnectionError(endpoint_url="http://198.19.0.13:9000")

    monkeypatch.setattr(Client, "head_bucket", nobody)
    with pytest.raises(NotAsDeclared, match="testbed-automq-data .*; bucket testbed-automq-ops"):
        require_buckets(over(Client()))


def test_every_object_is_removed_in_portions_that_the_store_takes():
    """Objects of tiered logs stayed: in a long campaign those of every run filled the disk."""
    client = Client({BUCKETS[0]: [f"key{number}" for number in range(2300)], BUCKETS[1]: ["one"], TIERED: ["t-0.log"]})
    empty_buckets(over(client))
    assert client.objects == {bucket: [] for bucket in ALL_BUCKETS}
    assert sorted(client.deletions) == [1, 1, 300, 1000, 1000]


def test_a_bucket_that_cannot_be_emptied_is_an_error():
    with pytest.raises(NotAsDeclared, match="bucket testbed-automq-data cannot be emptied: .*AccessDenied"):
        empty_buckets(over(Client({BUCKETS[0]: ["k"]}, broken=BUCKETS[:1])))
