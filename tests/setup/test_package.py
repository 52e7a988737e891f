"""The package: what pip installs works from any folder, without the extras, and without a checkout."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from testbed.extras import EXTRAS, missing_extra

ROOT = Path(__file__).parents[2]
INSTALLED_S = 900


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The sdist of the tracked files, and the wheel made from it, as `python -m build` makes both.

    They are built from a copy: a build leaves folders in its source.
    """
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
    words = ("-m", "build", "--no-isolation", "--outdir", made, source)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.fixture(scope="module")
def wheel(distributions):
    (found,) = distributions.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def sdist(distributions):
    (found,) = distributions.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with the wheel's files, and one with packages that cannot be imported: the extras."""
    folder, blocked = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("blocked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for package in (*EXTRAS, "py4j"):
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


def test_an_installed_testbed_knows_the_prompt_and_its_commands(installed, tmp_path):
    code = "from testbed.cli.prompt.dialog import grammar; print(*grammar().names)"
    folder, blocked = installed
    path = os.pathsep.join([str(folder), str(blocked), sysconfig.get_path("purelib")])
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {"hosts", "move", "nic-rate", "help"} <= set(done.stdout.split())


def test_the_sdist_has_the_licence_and_every_file_of_the_packages(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "topologies/three-brokers.yaml"} <= names
    tracked = subprocess.run(
        ["git", "ls-files", "testbed"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    tests_of_java = re.compile(r".*/java/src/test/.*")
    assert [name for name in tracked.splitlines() if name not in names and not tests_of_java.fullmatch(name)] == []


@pytest.mark.parametrize("words", [("plan", "two-brokers"), ("experiments",), ("run", "--help"), ("compare", "--help")])
def test_the_base_needs_no_extra(installed, tmp_path, words):
    done = run_installed(installed, tmp_path, *words, extras=False)
    assert done.returncode == 0, done.stderr


def test_a_command_that_needs_an_extra_says_which(installed, tmp_path):
    done = run_installed(installed, tmp_path, "results", "judge", extras=False)
    assert done.returncode == 70
    assert done.stderr == "testbed results: this needs pyspark: pip install 'testbed[spark]'\n"
    for name in ("pyspark.sql", "py4j"):
        assert missing_extra(ModuleNotFoundError(name=name)) == "this needs pyspark: pip install 'testbed[spark]'"
    assert missing_extra(ModuleNotFoundError(name="numpy")) is None


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_pip_installs_it_without_spark_and_it_runs(kind, wheel, sdist, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    given = {"wheel": wheel, "sdist": sdist}[kind]
    subprocess.run(
        [tmp_path / "venv/bin/python", "-m", "pip", "install", "--quiet", given], check=True, timeout=INSTALLED_S
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def testbed(*words):
        program = tmp_path / "venv/bin/testbed"
        return subprocess.run(
            [program, *words], check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    plan = testbed("plan", "three-brokers")
    assert plan.returncode == 0, plan.stderr
    assert "replay" in testbed("--help").stdout
    assert testbed("replay", "move-before-quota", "--dry-run").returncode == 0
    assert "pip install 'testbed[spark]'" in testbed("results", "judge").stderr
