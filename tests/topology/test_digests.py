"""The ready topologies resolve to the same values as ever: runs in a store are compared by these digests."""

from testbed.topology.find import find, ready

DIGESTS = {
    "automq": "d550d8fe382de7b96a39e8fce7233587f7bd3c44d9982bc7eb01106471e40264",
    "automq-three-brokers": "681d44334e38e69c250986d3bb88d83cf9f6dc77297a5cc841248c17a9c2fe21",
    "controllers": "6bd6a222795bd4b4de201d8c80fa27e64fc649608454e02a552e2bbf2f8599b2",
    "eight-brokers": "185f63ce60bba343a0ab2190e1824e5404a5ac951d20c6dc47e3b7dac52f50c7",
    "four-brokers": "2e6bcca114adf688bb20cdbaa744ef73d22dd6702c7a225d1fcafbc3a874e9c7",
    "s3": "791ba084bafb53ed4767989d98f0703bba54eac637cf6b7c79f8ebd1c1cbc887",
    "s3-three-brokers": "c741545ddf8f3527d5344440d644cc62d48d962b17ec4a5f21b021c7262ce3e2",
    "six-brokers": "1f57aa4c06be1a6b3fcbc3963497ec854cd29711fa24e9788990275aef2b5757",
    "ten-brokers": "a3a51c6b87d3646bf2ec79b366dce45ecfab5ea78a1fda5dc1339d73779ca089",
    "three-brokers": "8658fe9fb0ce57a89a49c01ea780502faf1bc8ac622cd94edcbf04fbab035ba1",
    "two-brokers": "04c051462a39fe53f978f754de11e5489abd767800a77c88f7c98dc1ab5c9376",
    "two-brokers-client": "1e695208427372107c1e15ae68304418cada62e477b2602326ed4f11daddd78f",
    "two-brokers-s3": "386536d93f1ab73dcebeaa4e3b181069b58aa3036ddd4e2bfb73e0f33c56a7bd",
    "two-racks-narrow-uplink": "6b4475133139c9870fd47038e2e26fff0054395ff21652f88997792d6a143f2b",
}


def test_ready_topologies_keep_their_digests() -> None:
    assert {name: find(name).digest() for name in ready()} == DIGESTS
