"""A commit on a disk that is really full: a clear error, and nothing that looks like a run. Needs root, no engine."""

import subprocess
from dataclasses import replace

import pytest

from results.contract.store import Store, StoreError

pytestmark = pytest.mark.containers


@pytest.fixture
def data(make_run):
    return replace(make_run(log_bytes=20e6, partitions=3).data(), report_html="x" * 40_000)


@pytest.mark.parametrize("pages", [1, 4, 8, 12])
def test_a_commit_that_does_not_fit_says_so_and_leaves_nothing(tmp_path, data, pages):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={pages * 4}k", "testbed", tmp_path], check=True)
    try:
        store = Store.open(tmp_path)
        with pytest.raises(
            StoreError, match=f"{tmp_path} cannot be written: No space left on device; free space there"
        ):
            store.commit(data)
        assert store.runs() == []
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)
