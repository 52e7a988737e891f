"""The packages of the environment are those of the lock file, and no others: what is audited is what runs.

This needs no network. It finds a package that nobody has pinned, another version, and one that came from elsewhere than
a registry. It does not know of vulnerabilities: CONTRIBUTING.md names the program that asks for those.
"""

import json
import re
from collections import defaultdict
from importlib.metadata import distributions
from pathlib import Path

from testbed.setup import environment as env

CHECKOUT = Path(__file__).parents[2]
NOT_LOCKED = ("testbed", "pip")
"""The project itself, and what an environment of Python's own has from the start."""


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned():
    text = (CHECKOUT / env.LOCK).read_text() + (CHECKOUT / env.INSTALLER_LOCK).read_text()
    found = defaultdict(set)  # a package may have another version for another interpreter
    for name, version in re.findall(r"(?m)^([A-Za-z0-9._-]+)==([^ ;\\]+)", text):
        found[normal(name)].add(version)
    return found


def problems(installed, wanted):
    """What is installed and not as pinned: name → why."""
    found = {}
    for name, version, url in installed:
        if normal(name) not in wanted:
            found[name] = "no lock file has it"
        elif version not in wanted[normal(name)]:
            found[name] = f"{version} is installed, {' or '.join(sorted(wanted[normal(name)]))} is pinned"
        elif url:
            found[name] = f"it came from {url}"
    return found


def test_an_unknown_package_another_version_and_another_origin_are_found():
    wanted = {"good": {"1.0", "0.9"}, "other": {"2.0"}, "elsewhere": {"1"}}
    installed = [("Good", "1.0", ""), ("other", "2.1", ""), ("extra", "1", ""), ("elsewhere", "1", "file:///x")]
    assert problems(installed, wanted) == {
        "other": "2.1 is installed, 2.0 is pinned",
        "extra": "no lock file has it",
        "elsewhere": "it came from file:///x",
    }


def test_the_environment_has_what_the_lock_files_pin_and_nothing_else():
    installed = []
    for each in distributions():
        origin = each.read_text("direct_url.json")
        installed.append((each.metadata["Name"], each.version, json.loads(origin)["url"] if origin else ""))
    names = {normal(name) for name, _version, _url in installed}
    assert {"pytest", "pyarrow", "kafka-python"} <= names, "these tests run in the project's environment"
    others = [each for each in installed if normal(each[0]) not in NOT_LOCKED]
    assert problems(others, pinned()) == {}
