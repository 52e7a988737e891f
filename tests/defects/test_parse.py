import pytest

from results.compare.compared_measures import measures
from results.compare.log_lines import LOG_LINES
from results.criteria.judgement import catalogue
from testbed.defects import by_host, defects, parse_defect
from testbed.defects.parse import in_words
from testbed.errors import UsageError
from testbed.experiments.experiment import find_experiment, read_settings
from testbed.topology.find import find

THREE = find("three-brokers")


@pytest.mark.parametrize(
    ("text", "option", "hosts"),
    [
        ("leader-throttle-leak", "leader-throttle-leak", ()),
        ("leader-throttle-leak:share=0.25", "leader-throttle-leak,share=0.25", ()),
        ("late-isr@b1,b2:seconds=3", "late-isr,seconds=3", ("b1", "b2")),
        (
            "throttle-ignores-partition@b2:topic=moved,partition=7",
            "throttle-ignores-partition,partition=7,topic=moved",
            ("b2",),
        ),
    ],
)
def test_a_defect_as_text(text, option, hosts):
    request = parse_defect(text)
    assert (request.option, request.hosts) == (option, hosts)
    assert parse_defect(str(request)) == request


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leader-trottle-leak", "no defect 'leader-trottle-leak'.*did you mean leader-throttle-leak"),
        ("late-isr:second=3", "no parameter 'second', it has seconds; did you mean seconds"),
        ("late-isr:seconds=x", "expected a number from 0 to 3600"),
        ("late-isr:seconds=nan", "expected a number from 0 to 3600"),
        ("late-isr:seconds=-1", "expected a number from 0 to 3600"),
        ("throttle-ignores-partition:partition=1.5", "expected a whole number"),
        ("throttle-ignores-partition:topic=a;b", "without commas and semicolons"),
        ("late-isr:", "nothing after the colon: expected key=value"),
        ("late-isr:seconds=1,seconds=2", "seconds is given twice"),
        ("late-isr@", "expected names of hosts"),
        ("late-isr@b1,b1", "expected names of hosts, each once"),
    ],
)
def test_a_mistake_is_named(text, message):
    with pytest.raises(UsageError, match=message):
        parse_defect(text)


def test_the_hosts_of_a_topology():
    assert by_host(["late-isr"], THREE) == dict.fromkeys(("b1", "b2", "b3"), ("late-isr",))
    found = by_host(["late-isr@b2", "leader-throttle-leak@b1,b2:share=0.1"], THREE)
    assert found == {"b1": ("leader-throttle-leak,share=0.1",), "b2": ("late-isr", "leader-throttle-leak,share=0.1")}
    assert in_words(found) == ["leader-throttle-leak share=0.1 on b1, b2", "late-isr on b2"]


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["late-isr@b9"], "b9 is none of the brokers of three-brokers, b1, b2 or b3"),
        (["late-isr", "late-isr@b2"], "b2 has it twice"),
    ],
)
def test_a_host_that_cannot_have_it(specs, message):
    with pytest.raises(UsageError, match=message):
        by_host(specs, THREE)


@pytest.mark.parametrize("defect", defects().values(), ids=lambda each: each.name)
def test_a_catalogue_entry_names_what_there_is(defect):
    known = {LOG_LINES, *(each.name for each in (*catalogue().values(), *measures()))}
    assert set(defect.found_by) <= known
    for size in defect.sizes:
        assert parse_defect(f"{defect.name}:{size}" if size else defect.name)
    for parameter in defect.parameters:
        assert parameter.checked(parameter.default) == parameter.default
    shown = defect.shown_by
    experiment = find_experiment(shown.experiment)
    settings = read_settings(experiment, shown.profile, shown.settings)
    experiment.fits(find(shown.topology or experiment.topology), settings)


ANSWERS = {"end-too-low"}
"""Defects that spoil no record, only where a consumer begins: nothing else but the load's account can know that."""


def test_what_spoils_data_is_found_in_records_of_before_the_load_and_of_the_load():
    """A follower spoils what it copies of both, and a leader what it appends: each has an audit of its own."""
    for defect in (each for each in defects().values() if each.kind == "data"):
        audits = {"live-records"} if defect.name in ANSWERS else {"records-intact", "live-records"}
        assert audits <= set(defect.found_by), defect.name
