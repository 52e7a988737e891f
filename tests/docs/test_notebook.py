"""The notebook reads the example's store, as it is committed: without outputs, and from the beginning to the end."""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebooks" / "store.ipynb"


def outputs(book, kind):
    return [output["data"][kind] for cell in book.cells for output in cell.get("outputs", []) if kind in output["data"]]


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Run the notebook with this interpreter; a kernel of the user's does not come in between."""
    folder = tmp_path_factory.mktemp("kernels")
    spec = folder / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(
        f'{{"argv": ["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"], '
        '"display_name": "Python 3", "language": "python"}'
    )
    patch = pytest.MonkeyPatch()
    patch.setenv("JUPYTER_PATH", str(folder))
    patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    patch.delenv("TESTBED_STORE", raising=False)
    book = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(book, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    patch.undo()
    return book


def test_it_is_committed_without_outputs():
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert len(code) >= 5
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def test_it_finds_the_runs_and_the_change_of_a_release(executed):
    plain = outputs(executed, "text/plain")
    assert plain[0] == "222"
    assert "3.9.2" in plain[1] and "inconclusive" in plain[1]
    assert "better" in plain[2]


def test_it_draws_the_series_and_the_rates(executed):
    assert len(outputs(executed, "image/png")) == 2
    text = "\n".join(outputs(executed, "text/plain"))
    assert "throttled-window" in text
    highest = float(next(line.split()[-1] for line in text.splitlines() if line.startswith("highest mean of 11 s")))
    quota = float(next(line.split()[-1] for line in text.splitlines() if line.startswith("quota")))
    assert 0.9 * quota < highest <= 1.2 * quota
