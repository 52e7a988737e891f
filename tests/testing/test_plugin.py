"""The pytest plugin without brokers: its options, its markers, its report, its cost."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest_plugins = ["pytester"]
FAKE = """
import pytest

class Fake:
    def __init__(self, topology): self.topology = topology

class FakeTestbeds:
    def get(self, topology): return Fake(topology)

@pytest.fixture(scope="session")
def session_testbeds():
    return FakeTestbeds()
"""
EVIDENCE = """
import sys, types

module = types.ModuleType("testbed.testing.evidence")
module.evidence = lambda testbed: [("testbed status", f"all about {testbed.topology}")]
sys.modules["testbed.testing.evidence"] = module
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on a project that has the plugin and nothing of this project's tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(test, *words, conftest=FAKE + EVIDENCE):
        pytester.makeconftest(conftest)
        pytester.makepyfile(test_mine=test)
        return pytester.runpytest_subprocess("-p", "testbed.testing.plugin", "--strict-markers", *words)

    return run


def test_the_package_registers_the_plugin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"testbed": "testbed.testing.plugin"}


def test_loading_the_plugin_imports_nothing_of_the_testbed_but_itself():
    code = "import sys, pytest; known = set(sys.modules); import testbed.testing.plugin; print(*{*sys.modules} - known)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert set(done.stdout.split()) == {"testbed", "testbed.testing", "testbed.testing.plugin"}


def test_marker_goes_before_option_and_option_before_ini(run, pytester):
    test = """
        import pytest

        def test_default(testbed): assert testbed.topology == {default!r}

        @pytest.mark.topology("two-brokers")
        def test_marked(testbed): assert testbed.topology == "two-brokers"
    """
    run(test.format(default="three-brokers")).assert_outcomes(passed=2)
    pytester.makeini("[pytest]\ntestbed_topology = six-brokers")
    run(test.format(default="six-brokers")).assert_outcomes(passed=2)
    run(test.format(default="mine.yaml"), "--testbed-topology", "mine.yaml").assert_outcomes(passed=2)


def test_a_marker_without_a_name_is_an_error_that_names_the_test(run):
    done = run("import pytest\n@pytest.mark.topology()\ndef test_one(testbed): pass")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*test_mine.py::test_one: the marker topology has one string*"])


def test_a_failed_test_has_the_evidence_and_a_passed_one_does_not(run):
    done = run("def test_good(testbed): pass\ndef test_bad(testbed): assert 0\ndef test_other(): assert 0")
    done.assert_outcomes(passed=1, failed=2)
    assert done.stdout.str().count("all about three-brokers") == 1
    done.stdout.fnmatch_lines(["*testbed status*", "all about three-brokers"])


def test_without_testcontainers_the_error_names_what_to_install(run):
    absent = 'import sys\nsys.modules["testcontainers"] = None\n'
    done = run("def test_one(kafka_cluster): pass", conftest=FAKE + EVIDENCE + absent)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*this needs testcontainers: pip install 'testbed[[]testcontainers[]]'*"])


def test_a_project_that_does_not_use_it_runs_as_before(run):
    done = run("import sys\ndef test_one(): assert 'docker' not in sys.modules", conftest="")
    done.assert_outcomes(passed=1)
