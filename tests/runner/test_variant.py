from dataclasses import asdict, replace

import pytest

from results.contract.document import decode
from testbed.errors import UsageError
from testbed.runner.named_comparisons import named_comparisons
from testbed.runner.variant import Variant, check_labels, differing, parse_variant, product, resolve

BASE = Variant("kip73-two-node", "kip73-two-node", settings=("preload=20s",))


def test_a_sweep_is_the_product_of_all_values_and_the_first_values_are_the_baseline():
    found = product(BASE, ["rate=5MB/s,10MB/s", "fetch=default,tuned", "partitions=50"])
    assert [variant.label for variant in found] == [
        "rate=5MB/s fetch=default",
        "rate=5MB/s fetch=tuned",
        "rate=10MB/s fetch=default",
        "rate=10MB/s fetch=tuned",
    ]
    assert found[3].settings == ("preload=20s", "rate=10MB/s", "fetch=tuned", "partitions=50")
    wanted = {"rate": 10_000_000, "fetch": "tuned", "preload": 20.0, "partitions": 50}
    assert wanted.items() <= resolve(found[3]).settings.items()


def test_without_values_to_vary_there_is_one_variant_named_as_the_experiment():
    assert product(BASE, []) == (BASE,)


def test_kafka_and_topology_can_be_swept_too():
    found = product(BASE, ["kafka=4.2.1,4.3.1"])
    assert [variant.kafka for variant in found] == ["4.2.1", "4.3.1"]


def test_a_sweep_knows_in_what_its_variants_differ():
    found = product(BASE, ["rate=5MB/s,10MB/s", "partitions=50", "kafka=4.2.1,4.3.1"])
    axes, values = differing(found)
    assert axes == ("rate", "kafka")
    assert values["rate=10MB/s kafka=4.2.1"] == ("10MB/s", "4.2.1")
    assert differing([BASE]) == ((), {"kip73-two-node": ()})


def test_what_a_variant_does_not_say_is_empty():
    mixed = [parse_variant("a: rate=5MB/s", BASE), parse_variant("b: kafka=4.2.1", BASE)]
    assert differing(mixed) == (("rate", "kafka"), {"a": ("5MB/s", ""), "b": ("", "4.2.1")})


@pytest.mark.parametrize("word", ["rate", "rate=", "rate=1MB/s,,2MB/s", "rate=1MB/s,1MB/s"])
def test_a_wrong_set_is_refused(word):
    with pytest.raises(UsageError, match="--set rate"):
        product(BASE, [word])


def test_a_name_given_twice_is_refused():
    with pytest.raises(UsageError, match="given twice"):
        product(BASE, ["rate=1MB/s", "rate=2MB/s"])


def test_a_variant_by_hand():
    found = parse_variant("tuned, new: fetch=tuned, rate=5MB/s kafka=4.2.1", BASE)
    assert found == Variant(
        "tuned, new", "kip73-two-node", "ci", ("preload=20s", "fetch=tuned", "rate=5MB/s"), "4.2.1", None
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("fetch=tuned", "expected 'LABEL: NAME=VALUE"),
        ("a: tuned", "expected NAME=VALUE"),
        ("a: x=", "NAME=VALUE"),
        ("a: rate=1MB/s rate=2MB/s", "rate is set twice: 1MB/s and 2MB/s; leave one out"),
    ],
)
def test_a_wrong_variant_is_refused(text, told):
    with pytest.raises(UsageError, match=told):
        parse_variant(text, BASE)


def test_a_variant_with_broken_brokers():
    found = parse_variant("broken: rate=5MB/s,defect=late-isr fetch=tuned defect=late-isr@b1,b2:seconds=3", BASE)
    assert found.settings == ("preload=20s", "rate=5MB/s", "fetch=tuned")
    assert found.defects == ("late-isr", "late-isr@b1,b2:seconds=3")
    one = replace(found, defects=found.defects[1:])
    assert resolve(one).defects == dict.fromkeys(("b1", "b2"), ("late-isr,seconds=3",))
    assert decode(Variant, asdict(found), "variant") == found
    old = {name: value for name, value in asdict(BASE).items() if name != "defects"}
    assert decode(Variant, old, "variant") == BASE
    swept = product(BASE, ["defect=late-isr:seconds=1,late-isr:seconds=2"])
    assert [each.label for each in swept] == ["defect=late-isr seconds=1", "defect=late-isr seconds=2"]
    check_labels(swept)
    with pytest.raises(UsageError, match="no defect 'late-irs'"):
        resolve(replace(BASE, defects=("late-irs",)))


def test_labels_are_checked():
    with pytest.raises(UsageError, match="there twice"):
        check_labels([BASE, BASE])
    with pytest.raises(UsageError, match="a label begins"):
        check_labels([Variant("", "kip73-two-node")])


def test_variants_on_one_ground_are_those_with_the_same_topology_and_kafka():
    one, two = resolve(parse_variant("a: fetch=default", BASE)), resolve(parse_variant("b: fetch=tuned", BASE))
    other = resolve(parse_variant("c: kafka=4.2.1", BASE))
    assert one.topology_digest == two.topology_digest != other.topology_digest
    assert one.overlay != two.overlay


@pytest.mark.parametrize(
    ("variant", "told"),
    [
        (Variant("a", "kip73-twonode"), "did you mean kip73-two-node"),
        (Variant("a", "kip73-two-node", "fast"), "there are smoke, ci, release"),
        (Variant("a", "kip73-two-node", settings=("rate=10",)), "--set rate=10"),
        (Variant("a", "kip73-two-node", topology="three-brokers"), "exactly 2 brokers"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_made(variant, told):
    with pytest.raises(UsageError, match=told):
        resolve(variant)


def test_a_distribution_of_sizes_is_one_value_whatever_commas_it_has():
    """Its sizes were variants of their own, each with records of one size."""
    sizes = "distribution=200B*9,10KiB*1"
    (one,) = product(BASE, [sizes])
    assert one.settings == (*BASE.settings, sizes)
    assert [each.settings[-2:] for each in product(BASE, [sizes, "keys=none,100"])] == [
        (sizes, "keys=none"),
        (sizes, "keys=100"),
    ]
    assert parse_variant(f"mixed: {sizes} keys=100", BASE).settings == (*BASE.settings, sizes, "keys=100")


def test_a_comparison_keeps_its_labelled_variants_with_a_distribution():
    given = ["distribution=200B*9,10KiB*1"]
    variants = named_comparisons()["batching-compare"].variants(given, "ci", None, None)
    assert {"spread", "paced"} <= {each.label for each in variants}
    assert all(given[0] in each.settings for each in variants)
