import pytest

from testbed.errors import UsageError
from testbed.experiments.experiment import experiments, find_experiment, read_settings
from testbed.experiments.layout import Layout, PartitionGroup
from testbed.experiments.load import load_specs
from testbed.experiments.load_shape import LoadShape, check_shape, load_shape, spread
from testbed.workload.spec import ProducerSpec, Size

PRODUCE = find_experiment("kip73-two-node-produce")


def _names(experiment):
    return {parameter.name for parameter in experiment.parameters}


GROUPS = (
    PartitionGroup("t", range(4), ("A",), ("B",), 4000, 40.0),
    PartitionGroup("t", range(4, 7), ("B", "A"), ("C", "A"), 3000, 30.0),
    PartitionGroup("still", range(5), ("A",), ("A",), 50),
)
LAYOUT = Layout(GROUPS, calibration=GROUPS[2])


def producers(shape):
    return [spec for spec in load_specs(LAYOUT, "ab12cd", shape) if isinstance(spec, ProducerSpec)]


def test_without_a_setting_every_producer_is_what_it_was():
    found = load_specs(LAYOUT, "ab12cd", load_shape(read_settings(PRODUCE, "ci", [])))
    assert found == load_specs(LAYOUT, "ab12cd")
    assert found[0] == ProducerSpec("producer-1", "t", (0, 1, 2, 3), 40.0, linger_ms=100.0)


def test_every_setting_reaches_every_producer():
    given = ["size=4KiB", "skew=1.5", "compression=lz4", "redundancy=0.5", "transactions=500ms", "keys=200"]
    for spec in producers(load_shape(read_settings(PRODUCE, "ci", given))):
        assert (spec.record_bytes, spec.skew, spec.compression, spec.redundancy) == (4096, 1.5, "lz4", 0.5)
        assert spec.transaction_s == 0.5
        assert spec.abort_every > 1
        assert spec.problems() == []


def test_keys_are_those_of_the_whole_load():
    assert [spec.keys for spec in producers(LoadShape(keys=70))] == [40, 20, 10]


def test_a_distribution_replaces_the_size():
    shape = load_shape(read_settings(PRODUCE, "ci", ["distribution=200B*9,10KiB*1"]))
    assert shape.sizes == (Size(200, 9.0), Size(10240, 1.0))
    assert all(spec.mean_bytes == (9 * 200 + 10240) / 10 for spec in producers(shape))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("size=32B", "32 bytes of header, and brokers refuse large ones: allowed are 33B to 900kB"),
        ("size=2MiB", "33B to 900kB"),
        ("size=1024", "1024 has no unit"),
        ("distribution=200B", "'200B': expected SIZE\\*WEIGHT; allowed are fixed, or such as 200B\\*9,10KiB\\*1"),
        ("distribution=200B*9,1KiB*x", "'1KiB\\*x': expected a number from 0 to"),
        ("distribution=200B*0", "a weight must be above 0"),
        ("keys=many", "expected a whole number from 1 to 10000000, or none"),
        ("skew=-1", "expected a number from 0 to 10"),
        ("skew=nan", "expected a number from 0 to 10"),
        ("compression=rar", "allowed are none, gzip, snappy, lz4, zstd"),
        ("redundancy=1", "expected a number from 0 to 0.99"),
        ("transactions=1h", "expected 50ms to 10s: .*, or none"),
        ("topics=0", "expected a whole number from 1 to 20"),
    ],
)
def test_a_wrong_value_is_answered_with_the_right_ones(given, told):
    with pytest.raises(UsageError, match=f"--set {given.split('*')[0].split('=')[0]}=.*{told}"):
        read_settings(PRODUCE, "ci", [given])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["keys=99"], "keys=99 is too few for 100 written partitions, as each key is in one partition; give at least"),
        (["redundancy=0.5"], "redundancy=0.5 changes nothing without a codec; give compression as well: gzip"),
        (["partitions=10", "topics=11"], "topics=11 is more than the 10 partitions of kip73; give at most 10"),
    ],
)
def test_contradictory_settings_are_refused_before_anything_is_provisioned(given, told):
    with pytest.raises(UsageError, match=told):
        PRODUCE.overlay(read_settings(PRODUCE, "ci", given))


def test_a_shape_of_no_load_is_refused():
    unwritten = Layout(GROUPS[2:], calibration=GROUPS[2])
    check_shape(LoadShape(topics=2), unwritten)
    with pytest.raises(UsageError, match="nothing is written to any partition"):
        check_shape(LoadShape(keys=100), unwritten)
    with pytest.raises(UsageError, match="nothing is written"):
        PRODUCE.overlay(read_settings(PRODUCE, "ci", ["inbound=none", "compression=lz4"]))


def test_topics_divide_each_group_and_keep_its_bytes_rates_and_replicas():
    found = spread(LAYOUT, 2).throttled
    assert [(g.topic, g.partitions, g.current, g.bytes, g.inbound_bytes_per_s) for g in found] == [
        ("t-1", range(2), ("A",), 2000, 20.0),
        ("t-2", range(2), ("A",), 2000, 20.0),
        ("t-1", range(2, 4), ("B", "A"), 2000, 20.0),
        ("t-2", range(2, 3), ("B", "A"), 1000, 10.0),
        ("still", range(5), ("A",), 50, 0.0),
    ]
    assert spread(LAYOUT, 1) is LAYOUT


@pytest.mark.parametrize("name", [name for name, each in experiments().items() if "inbound" in _names(each)])
def test_every_experiment_with_a_load_takes_its_shape(name):
    experiment = find_experiment(name)
    wanted = {"distribution", "keys", "skew", "compression", "redundancy", "transactions", "topics"}
    assert wanted | {"size"} <= _names(experiment)
    assert "size" in _names(experiment) and ("record-size" in _names(experiment)) == (not experiment.needs)
    experiment.overlay(read_settings(experiment, "ci", ["topics=2", "keys=10000", "compression=zstd"]))
