"""The suite `kip435`: its cases in every mode."""

import pytest

from testbed.runner.variant import of_case, resolve
from testbed.suites.suite import find_suite


@pytest.mark.parametrize("profile", ["smoke", "ci", "release"])
def test_every_mode_is_in_every_profile(profile):
    modes = {resolve(of_case(case, profile)).settings["mode"] for case in find_suite("kip435").cases(profile)}
    assert {"batched", "incremental"} <= modes
    assert profile == "smoke" or "unbatched" in modes


def test_the_release_has_every_reassignment_of_kip73_in_every_mode():
    ran = {
        (case.experiment, resolve(of_case(case, "release")).settings["mode"])
        for case in find_suite("kip435").cases("release")
    }
    moved = {case.experiment for case in find_suite("kip73").cases("release")} - {"kip73-bootstrap"}
    assert {(name, mode) for name in moved for mode in ("unbatched", "batched", "incremental")} <= ran
