import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from results.contract import durable
from testbed.errors import TestbedError, UsageError
from testbed.runner.campaign import Campaign, VariantGroup
from testbed.runner.journal import (
    CanaryReading,
    RunBegun,
    RunDone,
    RunFailed,
    RunsConfirmed,
    campaign_state,
    created,
    decode,
    encode,
    folder,
    known,
    opened,
)
from testbed.runner.variant import Variant
from testbed.wait import wait_until
from tests.runner.fakes import campaign

ENTRIES = (
    CanaryReading({"cpu": 0.05}, "abc", {"cores": 2}),
    RunBegun(0, "run-1"),
    RunDone(0, "run-1", "pass", {"move-seconds": 52.5}, ("throttled-window b2 receive",), "jars", 90.0),
    RunDone(0, "run-1", "pass", {}, (), "jars", 90.0, logged=("WARN ReplicaManager: A line.",)),
    RunFailed(1, "no disk", 3.0),
    RunsConfirmed(("run-1",)),
)


def test_series_and_entries_survive_the_way_through_json():
    asked = Campaign(
        "20261121T200000Z-compare-0a1b2c",
        "compare",
        (Variant("a", "x", "ci", ("rate=5MB/s",)), Variant("b", "x", kafka="4.2.1")),
        3,
        1,
        "/s",
        ("move-seconds",),
        0.03,
        ("0a", "0b"),
    )
    assert Campaign.from_document(json.loads(json.dumps(asked.document()))) == asked
    for entry in ENTRIES:
        assert decode(json.loads(json.dumps(encode(entry)))) == entry


def test_what_was_appended_is_read_again():
    asked = campaign()
    with created(asked) as journal:
        for entry in ENTRIES:
            journal.append(entry)
    with opened(asked.id) as journal:
        assert (journal.campaign, journal.entries) == (asked, ENTRIES)
    assert known() == [asked.id]


def test_a_line_cut_short_is_dropped_and_not_continued():
    asked = campaign()
    with created(asked) as journal:
        journal.append(ENTRIES[0])
        path = journal.path
    for cut in range(1, 30):
        whole = path.read_bytes()
        path.write_bytes(whole + json.dumps(encode(ENTRIES[1])).encode()[:cut])
        with opened(asked.id) as journal:
            assert journal.entries == (ENTRIES[0],)
            journal.append(ENTRIES[1])
        with opened(asked.id) as journal:
            assert journal.entries == ENTRIES[:2]
        path.write_bytes(whole)


def test_damage_elsewhere_is_told_with_file_and_line():
    asked = campaign()
    with created(asked) as journal:
        journal.append(ENTRIES[0])
        path = journal.path
    path.write_bytes(path.read_bytes() + b'{"entry":"done"}\n' + json.dumps(encode(ENTRIES[1])).encode() + b"\n")
    with pytest.raises(TestbedError, match=r"0a1b2c\.jsonl, line 3: not a campaign"), opened(asked.id):
        pass


def test_one_command_at_a_time_works_on_a_series():
    asked = campaign()
    with created(asked):
        with pytest.raises(TestbedError, match="another command works on campaign"), opened(asked.id):
            pass
        with pytest.raises(TestbedError, match="there already"), created(asked):
            pass
    with opened(asked.id):
        pass


@pytest.mark.parametrize("name", ["nope", "../../etc/passwd", "20261121T200000Z-sweep-ffffff"])
def test_there_is_no_such_series(name):
    with pytest.raises(UsageError, match="there is no campaign"), opened(name):
        pass


def test_a_full_disk_leaves_no_half_line(monkeypatch):
    asked = campaign()
    with created(asked) as journal:
        journal.append(ENTRIES[0])
        before = journal.path.read_bytes()
        real = os.fsync

        def full(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(TestbedError, match="No space left.*--resume"):
            journal.append(ENTRIES[1])
        monkeypatch.setattr(os, "fsync", real)
        assert journal.path.read_bytes() == before
        journal.append(ENTRIES[1])
    with opened(asked.id) as journal:
        assert journal.entries == ENTRIES[:2]


WORKER = """
import sys, time
from pathlib import Path
from testbed.runner.execution import CampaignLimits, execute
from testbed.runner.journal import RunDone, created, opened
sys.path.insert(0, "tests/runner")
from fakes import FakeExecutor, campaign

class Slow(FakeExecutor):
    def run(self, variant, begun):
        time.sleep(0.05)
        path = Path(sys.argv[1]) / begun.run_id
        path.write_text(variant.label)
        return self.committed(begun)
    def committed(self, begun):
        path = Path(sys.argv[1]) / begun.run_id
        return RunDone(begun.slot, begun.run_id, "pass", {"move-seconds": 1.0}, (), "jars") if path.exists() else None

asked = campaign(repeats=10)
with (created(asked) if sys.argv[2] == "new" else opened(asked.id)) as journal:
    execute(journal, Slow(), CampaignLimits(), lambda text: None)
"""


def test_a_process_killed_dead_is_resumed_by_another(tmp_path):
    """kill -9, three times at whatever point it is: nothing is repeated, nothing is lost."""
    store = tmp_path / "runs"
    store.mkdir()
    asked, path = campaign(repeats=10), folder() / "20261121T200000Z-sweep-0a1b2c.jsonl"
    root = Path(__file__).parents[2]

    def start(how):
        return subprocess.Popen([sys.executable, "-c", WORKER, str(store), how], cwd=root)

    for kill in range(3):
        process = start("again" if kill else "new")
        enough = (kill + 1) * 4
        wait_until(lambda wanted=enough: len(list(store.iterdir())) >= wanted, 60, 0.01, "some runs")
        time.sleep(0.013 * kill)  # not always at the same point
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert path.exists()
    assert start("again").wait(timeout=60) == 0
    with opened(asked.id) as journal:
        state = campaign_state(journal.entries)
    assert sorted(state.ran) == list(range(20))
    assert sorted(ran.done.run_id for ran in state.ran.values()) == sorted(p.name for p in store.iterdir())


def test_what_sets_two_campaigns_apart_is_said_in_short_lines():
    there = campaign("AB")
    assert there.differences(replace(there, id="another")) == []
    assert there.differences(replace(there, repeats=4)) == ["repeats: 3 there, 4 here"]
    assert there.differences(campaign("BA")) == ["the order of the variants: A, B there, B, A here"]
    other = replace(there.variants[1], kafka="4.2.1")
    assert there.differences(replace(there, variants=(there.variants[0], other))) == [
        "kafka: the default there, 4.2.1 here, of B"
    ]
    set_there, set_here = (
        tuple(replace(each, settings=("mode=batched", f"partitions={count}")) for each in there.variants)
        for count in (10, 20)
    )
    assert replace(there, variants=set_there).differences(replace(there, variants=set_here)) == [
        "settings: partitions=10 there, partitions=20 here, of A, B"
    ]
    turned = tuple(replace(each, settings=each.settings[::-1]) for each in set_there)
    assert replace(there, variants=set_there).differences(replace(there, variants=turned)) == []
    assert there.differences(campaign("AC")) == ["variants only there: B", "variants only here: C"]
    assert there.differences(replace(there, topology_digests=("0", "1"))) == ["the topology of a variant"]
    built = replace(there, builds={"/src/rsm": "d1"})
    assert built.differences(replace(built, builds={"/src/rsm": "d2"})) == ["another build: /src/rsm"]
    # A journal of an earlier version has none.
    assert there.differences(built) == []
    groups = (VariantGroup("g", ("A", "B"), 3, ()),)
    assert len(there.differences(replace(there, groups=groups))) == 1


@pytest.mark.parametrize(
    ("part", "error", "kind", "why"),
    [
        (
            "append",
            OSError(28, "No space left on device"),
            TestbedError,
            "No space left on device; free space on that disk, then try again$",
        ),
        ("lock_descriptor", OSError(37, "No locks available"), OSError, r"No locks available: '.*\.jsonl'$"),
    ],
    ids=["full disk", "no locks"],
)
def test_a_journal_that_cannot_be_begun_leaves_no_campaign(monkeypatch, part, error, kind, why):
    """An empty journal stayed: `--resume`, which the message advised, refused it."""

    def fail(*_words, **_named):
        raise error

    asked = campaign("A")
    monkeypatch.setattr(durable, part, fail)
    with pytest.raises(kind, match=why), created(asked):
        pytest.fail("it was begun")
    assert asked.id not in known()
