"""Cases of software that you have to supply: run where it is, named as not run where it is not."""

import pytest

from testbed.errors import UsageError
from testbed.runner.named_comparisons import named_comparisons
from testbed.runner.nightly import NightRequest, not_run
from testbed.runner.qualification_plan import plan
from testbed.runner.qualification_scope import QualificationScope
from testbed.runner.variant import of_case
from testbed.software.automq import VARIABLE
from testbed.suites.suite import find_suite

S3 = find_suite("s3")


def names(profile):
    return {case.name for case in S3.cases(profile)}


@pytest.mark.parametrize("profile", ["smoke", "ci", "release"])
def test_without_a_distribution_no_case_of_automq_is_run_and_each_is_named(monkeypatch, profile):
    monkeypatch.delenv(VARIABLE, raising=False)
    lacking = S3.not_run(profile)
    assert names(profile) | lacking.keys() == {case.name for case in S3.profiles[profile]}
    assert lacking
    assert all(name.endswith("-automq") and VARIABLE in why for name, why in lacking.items())
    assert not_run(NightRequest("s3", profile=profile)) == lacking
    first = next(iter(lacking))
    with pytest.raises(UsageError, match=f"scenario {first} cannot be run: no AutoMQ is supplied"):
        S3.cases(profile, [first])


def test_with_one_all_are_run_by_its_own_software_whatever_kafka_is_asked_for(monkeypatch):
    monkeypatch.setenv(VARIABLE, "/tmp/automq")
    assert S3.not_run("ci") == {}
    cases = {case.name: of_case(case, "ci", "4.2.1") for case in S3.cases("ci")}
    assert cases["one-automq"].kafka is None
    assert cases["one-disk"].kafka == "4.2.1"


def test_a_release_of_kafka_is_not_qualified_with_automq(monkeypatch):
    monkeypatch.setenv(VARIABLE, "/tmp/automq")
    variants, _groups = plan("4.3.1", ["4.2.1"], QualificationScope(suites=("s3",)))
    assert {variant.label.split(",")[0] for variant in variants} >= {"s3/one-disk", "s3/scale-out-tiered"}
    assert not [variant for variant in variants if "automq" in variant.label]


def test_a_comparison_of_storages_has_automq_where_it_is_supplied(monkeypatch):
    compared = named_comparisons()["s3-compare"]
    monkeypatch.setenv(VARIABLE, " ")  # as good as none
    storages = {variant.settings[0] for variant in compared.variants([], "ci", None, None)}
    assert storages == {"storage=disk", "storage=tiered"}
    monkeypatch.setenv(VARIABLE, "/tmp/automq")
    found = compared.variants(["partitions=1"], "ci", None, None)
    assert [variant.settings[0] for variant in found] == ["storage=disk", "storage=tiered", "storage=automq"]
    kafkas = [variant.kafka for variant in compared.variants(["partitions=1"], "ci", "4.2.1", None)]
    assert kafkas == ["4.2.1", "4.2.1", None]  # AutoMQ is its own software
    several = compared.variants(["partitions=1", "kafka=4.2.1,4.3.1"], "ci", None, None)
    assert [(each.label, each.kafka) for each in several[2:]] == [
        ("storage=tiered kafka=4.2.1", "4.2.1"),
        ("storage=tiered kafka=4.3.1", "4.3.1"),
        ("storage=automq", None),
    ]
    on_one = compared.variants(["partitions=1"], "ci", None, "s3")
    assert [variant.settings[0] for variant in on_one] == ["storage=disk", "storage=tiered"]
