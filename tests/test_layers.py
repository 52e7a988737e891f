"""The contract of who may import whom, in pyproject.toml."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_imports_go_down_only():
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_package_has_a_layer():
    """What no layer names may import anything."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [layer for contract in settings["contracts"] for layer in contract.get("layers", ())]
    named = {name.strip() for layer in layers for name in re.split(r"[:|]", layer)}
    found = {
        f"{package}.{path.stem}"
        for package in ("testbed", "results")
        for path in (ROOT / package).iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert found - named == {"testbed.__init__", "testbed.__main__", "results.__init__"}
