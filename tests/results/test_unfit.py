"""Seconds in which the machine was unfit: which these are, what is no part of a wait, and what is left open by them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.contract.schema import Sample, events_table, samples_table
from results.criteria import judge
from results.criteria.judgement import noisy
from results.criteria.sample_series import RunSeries
from results.criteria.unfit import ALWAYS_FIT, UnfitSpan, UnfitTime, mostly_unfit, unfit_time
from tests.results.judged import named
from tests.results.synthetic import us
from tests.results.test_results_protection import clients, run_of

CORES = 2


def machine(*, busy=0.93, steal=0.0, seconds=(6, 8), brokers=0.9, hosts=("b1", "b2"), until=30):
    """A machine that is unfit between two seconds; `brokers` is the CPUs of all brokers meanwhile, None: no reading."""
    found, used = [], 0.0
    for t in range(-2, until):
        over = seconds[0] < t <= seconds[1]
        found += [Sample(us(t), "machine", "cpu.busy", busy if over else 0.4)]
        found += [Sample(us(t), "machine", "cpu.steal", steal if over else 0.0)]
        used += (brokers or 0.0) if over else 0.3
        for host in hosts:
            found.append(Sample(us(t), host, "nic.rx.bytes", 1e6 * t))
            if brokers is not None:
                found.append(Sample(us(t), host, "jvm.cpu.seconds", 10.0 + used / len(hosts)))
    return found


def unfit(samples):
    return unfit_time(RunSeries(samples_table(samples), events_table([])), CORES)


def spans(found):
    return [((each.begin_us - us(0)) / 1e6, (each.end_us - us(0)) / 1e6) for each in found.spans]


def test_it_is_unfit_in_each_second_in_which_others_than_brokers_kept_it_busy():
    found = unfit(machine())
    assert spans(found) == [(6.0, 7.0), (7.0, 8.0)]
    assert found.spans[0].kafka == pytest.approx(0.45)
    assert spans(unfit(machine(busy=0.85))) == []
    assert spans(unfit(machine(busy=0.3, steal=0.06, brokers=None))) == [(6.0, 7.0), (7.0, 8.0)]


def test_what_brokers_alone_keep_busy_is_no_excuse_nor_is_what_is_not_known():
    assert spans(unfit(machine(busy=0.99, brokers=1.75))) == []  # 88 % of two cores
    assert spans(unfit(machine(busy=0.99, brokers=1.65))) == [(6.0, 7.0), (7.0, 8.0)]
    assert spans(unfit(machine(brokers=None))) == []
    assert spans(unfit([each for each in machine() if each.host != "b2" or each.ts_us < us(2)])) == []


def test_a_second_in_which_the_quota_is_used_up_is_unfit_as_well():
    quota = [Sample(us(t), "machine", "cpu.quota", 0.95 if t in (7, 8) else 0.4) for t in range(-2, 30)]
    found = unfit([*machine(busy=0.4), *quota])
    assert spans(found) == [(6.0, 7.0), (7.0, 8.0)]
    assert found.spans[0].busy == 0.95


def test_what_a_controller_of_its_own_uses_is_kafkas_as_well():
    busy = machine(busy=0.99, brokers=1.6)  # 80 % of two cores
    controller = machine(brokers=0.2, hosts=("c1",))  # and another 10 %
    assert spans(unfit(busy)) == [(6.0, 7.0), (7.0, 8.0)]
    assert spans(unfit([*busy, *(each for each in controller if each.host == "c1")])) == []


def test_a_broker_that_does_not_run_uses_nothing_and_one_that_starts_uses_all_that_it_has_used():
    there = [each for each in machine() if each.metric != "jvm.cpu.seconds" or each.host != "b2"]
    down = [Sample(us(t), "b2", "jvm.cpu.seconds", 99.0) for t in (-2, -1)]
    (first, _second) = unfit([*there, *down]).spans
    assert first.kafka == pytest.approx(0.9 / 2 / CORES)
    back = [Sample(us(t), "b2", "jvm.cpu.seconds", used) for t, used in ((6, 0.1), (7, 1.7), (8, 3.4))]
    assert spans(unfit([*there, *down, *back])) == []  # 1.6 and 0.45 CPUs of two


def test_a_reading_that_comes_late_tells_nothing_of_a_second():
    assert spans(
        unfit([each for each in machine() if each.host != "machine" or not 2 < (each.ts_us - us(0)) / 1e6 < 7])
    ) == [(7.0, 8.0)]


def test_unfit_time_is_no_part_of_a_wait():
    two = UnfitTime((UnfitSpan(6_000_000, 8_000_000, 0.9, 0.0, 0.4),))
    due = np.array([4, 5, 6, 7, 8]) * 1_000_000
    waits = np.array([0.5, 2.5, 3.0, 0.9, 0.9]) * 1e6
    # The first ends before, the third is a second longer than what is unfit, the last began after it.
    assert two.spare(due, waits).tolist() == [0.5e6, 0.5e6, 1e6, 0.0, 0.9e6]
    assert ALWAYS_FIT.spare(due, waits).tolist() == waits.tolist()
    assert two.seconds(7_000_000, 20_000_000) == 1.0
    assert (two.later(5_500_000, 1.0), two.later(1_000_000, 1.0)) == (8_500_000, 2_000_000)


def protected(stall, samples_of_load):
    manifest, samples, events = run_of(clients(stall=stall))
    other = samples.filter(pc.invert(pc.is_in(samples["host"], pa.array(["machine"]))))
    # An agent reads logs and NICs at once; the run has its own readings.
    load = [each for each in samples_of_load if each.metric != "nic.rx.bytes"]
    judgement = judge(manifest, pa.concat_tables([other, samples_table(load)]), events)
    [found], [load] = named(judgement, "clients-protected"), named(judgement, "machine-load")
    return judgement, found, load


LOADED = machine(seconds=(8, 10), until=90)
"""In no 11 s it is busy for more than a half on average."""


def test_clients_that_waited_in_unfit_seconds_alone_are_not_judged_and_the_run_is_noisy():
    judgement, found, load = protected((8, 1, (1200, 0.02)), LOADED)
    assert (found.verdict, load.verdict) == ("inconclusive", "inconclusive")
    assert found.why.startswith(
        "not judged: machine-load (machine): the machine was 93.0 % busy (45.0 % by Kafka) in the worst of 2.0 s, "
        "the first at +8.0 s; without this time: p99 (longest)"
    )
    assert "copying held an acknowledgement back" in found.why
    assert load.observed == 0.93 and found.power is None
    assert noisy(judgement)


@pytest.mark.parametrize(
    ("stall", "load"),
    [
        ((8, 1, (1200, 0.02)), machine(seconds=(8, 10), until=90, brokers=1.8)),
        ((8, 1, (1200, 0.02)), machine(seconds=(8, 10), until=90, brokers=None)),
        ((8, 1, (1200, 0.02)), machine(seconds=(20, 22), until=90)),
        ((8, 1, (4500, 0.02)), LOADED),
        ((8, 8, (1200, 0.02)), LOADED),
    ],
    ids=["brokers were busy", "not known who was", "at another time", "longer than that", "before and after"],
)
def test_what_unfit_seconds_do_not_explain_fails(stall, load):
    _judgement, found, machine_load = protected(stall, load)
    assert found.verdict == "fail"
    assert machine_load.verdict == "pass"


def test_a_client_that_waited_for_nothing_leaves_the_load_as_it_was():
    judgement, found, load = protected(None, LOADED)
    assert (found.verdict, load.verdict) == ("pass", "pass")
    assert load.observed is not None and load.observed < 0.6
    assert not noisy(judgement)


@pytest.mark.parametrize(("until", "found"), [(12, 0), (18, 1)])
def test_an_unfit_machine_explains_a_run_without_an_end_where_it_was_unfit_for_more_than_half_of_it(until, found):
    samples = samples_table(machine(seconds=(-2, until)))
    assert len(mostly_unfit(RunSeries(samples, events_table([])), CORES)) == found
    assert mostly_unfit(RunSeries(samples_table([]), events_table([])), CORES) == []
