"""A hundred kills in one go, over every command that changes something: nothing is left, and no half run.

TESTBED_KILL_SEED draws others. TESTBED_KILLS=100 TESTBED_KILLS_OF=0:25 does the first 25 of them; TESTBED_KILLS_LOG
names a file to which each is appended, and whose table is printed at the end.
"""

import json
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.containers.kill_series import TARGETS, Series, drawn, table

SEED, COUNT = int(os.environ.get("TESTBED_KILL_SEED", "2411")), int(os.environ.get("TESTBED_KILLS", "100"))
BEGIN, END = (int(each) for each in os.environ.get("TESTBED_KILLS_OF", f"0:{COUNT}").split(":"))
LOG = os.environ.get("TESTBED_KILLS_LOG")


def test_a_seed_draws_the_same_kills_and_a_hundred_reach_every_command():
    kills = drawn(SEED, 100)
    assert kills == drawn(SEED, 100) != drawn(SEED + 1, 100)
    assert len(kills) == 100
    often = Counter(kill.command for kill in kills)
    assert all(abs(often[target.name] - target.share) <= 1 for target in TARGETS)
    spans = {target.name: target.span_s for target in TARGETS}
    assert all(0 < kill.at_s <= spans[kill.command] for kill in kills)


@pytest.fixture(scope="module")
def series(own_state, tmp_path_factory):
    return Series(tmp_path_factory.mktemp("kills"), f"ci-drawn-{os.environ.get('PYTEST_XDIST_WORKER', BEGIN)}")


@pytest.mark.containers
@pytest.mark.nightly
@pytest.mark.parametrize("number", range(BEGIN, END))
def test_nothing_is_left_after_a_kill(series, number):
    draw = drawn(SEED, COUNT)[number]
    killed = series.kill(draw)
    if LOG:
        with Path(LOG).open("a") as log:
            log.write(json.dumps({"number": number, "draw": asdict(draw), "killed": asdict(killed)}) + "\n")
    print(f"{number}: {draw.command}, {killed.at_s} s, at `{killed.stage}`: {killed.found}; left: {killed.left}")
    assert killed.left == ()


@pytest.mark.nightly
def test_the_table_of_all_kills():
    if not LOG:
        pytest.skip("TESTBED_KILLS_LOG names no file")
    print(table(Path(LOG).read_text().splitlines()))
