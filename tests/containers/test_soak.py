"""Two hours of moves back and forth under load and faults: memory, handles and disk stay flat, and no record is lost.

TESTBED_SOAK_MINUTES sets another time; TESTBED_SOAK_OUT names a folder for the figures and their plot.
"""

import os
from pathlib import Path

import pytest

from testbed.faults import Faults
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.throttle.journal import JournalFolder
from testbed.topology.find import find
from tests.containers.soak import Soak, Usage, growth, plot, write_csv

MINUTES = float(os.environ.get("TESTBED_SOAK_MINUTES", "120"))
OUT = os.environ.get("TESTBED_SOAK_OUT")
NAME = "ci-soak"
GROWTH = 0.1
"""A leak of 10 % between two thirds of the time is found. The interpreter's and the JVM's heaps vary by less."""


def usage(number, **changes):
    return Usage(
        **{
            **dict.fromkeys(Usage.__dataclass_fields__, 100),
            "at_s": 60.0 * number,
            "round": number,
            **changes,
        }
    )


def test_a_leak_is_growth_and_noise_is_none():
    assert growth([100, 140, 150, 149, 151, 150, 152, 149, 150]) < GROWTH
    assert growth([100 + 10 * n for n in range(12)]) > GROWTH
    assert growth([100]) == 0


def test_the_plot_has_a_line_for_each_quantity(tmp_path):
    found = [usage(n, driver_rss_bytes=10**8 + n) for n in range(5)]
    text = plot(found)
    assert text.count("<polyline") == 7
    write_csv(found, tmp_path / "soak.csv")
    assert len((tmp_path / "soak.csv").read_text().splitlines()) == 6


@pytest.mark.containers
@pytest.mark.nightly
def test_memory_handles_and_disk_stay_flat_and_no_record_is_lost(own_state, engine):
    testbed = Testbed.up(find("three-brokers"), name=NAME)
    soak = Soak(testbed)
    try:
        soak.run(60 * MINUTES)
        assert Faults(testbed).list() == ()
        assert JournalFolder().ids() == []
    finally:
        if OUT and soak.usage:
            Path(OUT).mkdir(parents=True, exist_ok=True)
            write_csv(soak.usage, Path(OUT) / "soak.csv")
            (Path(OUT) / "soak.svg").write_text(plot(soak.usage))
        testbed.close()
        remove(engine, NAME)
    assert all((r.lost, r.duplicated, r.corrupt) == (0, 0, 0) for r in soak.rounds), soak.rounds
    assert all(r.found >= r.acked > 0 for r in soak.rounds)
    # The first round imports, connects and warms up.
    settled = soak.usage[1:]
    for name in ("driver_rss_bytes", "driver_handles", "driver_threads", "brokers_handles", "brokers_disk_bytes"):
        values = [getattr(each, name) for each in settled]
        assert growth(values) <= GROWTH, (name, values)
    assert {each.containers for each in settled} == {4}
