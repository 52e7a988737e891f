"""Disks are found by the file behind them, whatever else was lost."""

import pytest

from testbed.provision import machine


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def loop(root, number, file):
    folder = root / f"loop{number}" / "loop"
    folder.mkdir(parents=True)
    (folder / "backing_file").write_text(f"{file}\n")


def test_loop_devices_are_found_by_their_file(tmp_path):
    blocks = tmp_path / "block"
    loop(blocks, 0, machine.disk_file("one", "b1"))
    loop(blocks, 1, machine.disk_file("one-more", "b1"))
    loop(blocks, 7, f"{machine.disk_file('one', 'b2')} (deleted)")
    (blocks / "loop3").mkdir()
    loop(blocks, 4, "/somewhere/else.img")
    assert list(machine.attached_devices("one", blocks)) == ["/dev/loop0", "/dev/loop7"]
    assert list(machine.attached_devices("two", blocks)) == []
