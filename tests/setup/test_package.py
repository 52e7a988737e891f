"""The package: what pip installs works from any folder, without the extras, and without a checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from testbed.extras import EXTRAS, missing_extra

ROOT = Path(__file__).parents[2]
INSTALLED_S = 900


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the tracked files, built from a copy: a build leaves folders in its source."""
    source, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, tracked.split("\0")):
        if not name.startswith(("tests/", "docs/", "results/example/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    words = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", made, source)
    subprocess.run([sys.executable, *words], check=True)
    (found,) = made.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with the wheel's files, and one with packages that cannot be imported: the extras."""
    folder, blocked = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("blocked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for package in EXTRAS:
        (blocked / package).mkdir()
        (blocked / package / "__init__.py").write_text(f"raise ModuleNotFoundError(name={package!r})\n")
    return folder, blocked


def run_installed(installed, where, *words, extras=True):
    folder, blocked = installed
    # Without the site's `.pth` files, one of which names the checkout.
    path = [str(folder), *([] if extras else [str(blocked)]), sysconfig.get_path("purelib")]
    return subprocess.run(
        [sys.executable, "-S", "-P", "-m", "testbed.cli.main", *words],
        cwd=where,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_wheel_has_the_topologies_and_works_from_any_folder(installed, tmp_path):
    plan = run_installed(installed, tmp_path, "plan", "three-brokers")
    assert plan.returncode == 0, plan.stderr
    assert "data0 198.19." in plan.stdout
    told = run_installed(installed, tmp_path, "replay", "no-such-incident")
    assert "give a file, or one of broker-lost" in told.stderr
    assert "the testbed is installed" in run_installed(installed, tmp_path, "doctor").stdout


@pytest.mark.parametrize("words", [("plan", "two-brokers"), ("experiments",), ("run", "--help"), ("compare", "--help")])
def test_the_base_needs_no_extra(installed, tmp_path, words):
    done = run_installed(installed, tmp_path, *words, extras=False)
    assert done.returncode == 0, done.stderr


def test_a_command_that_needs_an_extra_says_which(installed, tmp_path):
    done = run_installed(installed, tmp_path, "results", "judge", extras=False)
    assert done.returncode == 70
    assert done.stderr == "testbed results: this needs pyspark: pip install 'testbed[spark]'\n"
    assert missing_extra(ModuleNotFoundError(name="pyspark.sql")) == "this needs pyspark: pip install 'testbed[spark]'"
    assert missing_extra(ModuleNotFoundError(name="numpy")) is None


@pytest.mark.nightly
def test_pip_installs_the_wheel_without_spark_and_it_runs(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = [tmp_path / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel]
    subprocess.run(pip, check=True, timeout=INSTALLED_S)
    program = tmp_path / "venv/bin/testbed"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        check=False, args=[program, "plan", "three-brokers"], cwd=tmp_path, env=environment, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    lacking = subprocess.run(
        [program, "results", "judge"], check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert "pip install 'testbed[spark]'" in lacking.stderr
