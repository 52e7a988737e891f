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
from tests.containers.soak import Round, Soak, Usage, disk_per_round, growth, plot, write_csv

MINUTES = float(os.environ.get("TESTBED_SOAK_MINUTES", "120"))
OUT = os.environ.get("TESTBED_SOAK_OUT")
NAME = "ci-soak"
GROWTH = 0.1
"""A leak of 10 % between two thirds of the time is found. What the driver and the brokers use varies by less."""


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


def test_the_disk_is_that_of_the_rounds_that_it_still_has():
    slow = [usage(n, at_s=30.0 * n, brokers_disk_bytes=200) for n in range(20)]
    fast = [usage(n, at_s=600 + 15.0 * n, brokers_disk_bytes=400) for n in range(20)]
    assert growth(disk_per_round([*slow, *fast])) < GROWTH
    leaking = [usage(n, at_s=30.0 * n, brokers_disk_bytes=200 + 5 * n) for n in range(40)]
    assert growth(disk_per_round(leaking)) > GROWTH


def test_the_plot_has_a_line_for_each_quantity(tmp_path):
    found = [usage(n, driver_rss_bytes=10**8 + n) for n in range(5)]
    text = plot(found)
    assert text.count("<polyline") == 7
    write_csv(found, tmp_path / "soak.csv")
    assert len((tmp_path / "soak.csv").read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({}, 0),
        ({"duplicated": 2, "reordered": 1, "sent_again": 3}, 0),
        ({"duplicated": 2, "sent_again": 1}, 1),
        ({"lost": 1, "found": 99}, 2),
        ({"acked": 0, "found": 0}, 1),
        ({"corrupt": 1}, 1),
    ],
)
def test_a_round_has_problems_unless_the_client_explains_them(changes, problems):
    sound = {"lost": 0, "duplicated": 0, "reordered": 0, "corrupt": 0, "sent_again": 0, "acked": 100, "found": 100}
    each = Round(number=1, moves=2, faults=(), **{**sound, **changes})
    assert len(each.problems()) == problems


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
            (Path(OUT) / "rounds.txt").write_text("".join(f"{each}\n" for each in soak.rounds))
        testbed.close()
        remove(engine, NAME)
    assert [problem for each in soak.rounds for problem in each.problems()] == []
    # The first round imports, connects and warms up.
    settled = soak.usage[1:]
    flat = ("driver_rss_bytes", "driver_handles", "driver_threads", "brokers_rss_bytes", "brokers_handles")
    values = {name: [getattr(each, name) for each in settled] for name in flat}
    values["brokers_disk_bytes per round"] = disk_per_round(settled)
    assert {name: growth(each) for name, each in values.items() if growth(each) > GROWTH} == {}
    assert {each.containers for each in settled} == {4}
