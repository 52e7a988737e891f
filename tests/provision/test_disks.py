"""Disks are found by the file behind them, whatever else was lost."""

import pytest

from testbed.provision import disks


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def loop(root, number, file):
    folder = root / f"loop{number}" / "loop"
    folder.mkdir(parents=True)
    (folder / "backing_file").write_text(f"{file}\n")


def test_loop_devices_are_found_by_their_file(tmp_path):
    blocks = tmp_path / "block"
    loop(blocks, 0, disks.image("one", "b1"))
    loop(blocks, 1, disks.image("one-more", "b1"))
    loop(blocks, 7, f"{disks.image('one', 'b2')} (deleted)")
    (blocks / "loop3").mkdir()
    loop(blocks, 4, "/somewhere/else.img")
    assert list(disks.attached("one", blocks)) == ["/dev/loop0", "/dev/loop7"]
    assert list(disks.attached("two", blocks)) == []
