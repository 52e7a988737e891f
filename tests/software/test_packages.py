import io
import tarfile
from pathlib import Path

import pytest

from testbed.errors import SoftwareError
from testbed.software.image import contents_digest, installed_packages

STATUS = """\
Package: tini
Status: install ok installed
Architecture: amd64
Version: 0.19.0-1
Description: tiny but valid init
 Package: not-a-field
Conffiles:
 /etc/tini: 0123

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: less
Status: install ok installed
Architecture: amd64
Version: 590-2
"""


def made(path: Path, status: str | None, at: int) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, text in (("./etc/made-at", str(at)), ("./var/lib/dpkg/status", status)):
            if text is not None:
                member = tarfile.TarInfo(name)
                member.size, member.mtime = len(text), at
                tar.addfile(member, io.BytesIO(text.encode()))
    return path


def test_what_is_installed_in_order() -> None:
    assert installed_packages(STATUS) == ("less 590-2 amd64", "tini 0.19.0-1 amd64")


def test_two_that_were_made_at_different_times_are_alike_and_a_newer_package_is_not(tmp_path: Path) -> None:
    first = contents_digest(made(tmp_path / "1.tar", STATUS, 1), "recipe")
    assert first.startswith("sha256:")
    assert contents_digest(made(tmp_path / "2.tar", STATUS, 2), "recipe") == first
    assert contents_digest(made(tmp_path / "3.tar", STATUS.replace("590-2", "590-3"), 1), "recipe") != first
    assert contents_digest(made(tmp_path / "4.tar", STATUS, 1), "another") != first


@pytest.mark.parametrize("status", [None, "", "Package: gone\nStatus: deinstall ok config-files\n"])
def test_without_packages_it_was_not_made_whole(tmp_path: Path, status: str | None) -> None:
    with pytest.raises(SoftwareError, match=r"1\.tar has no installed packages"):
        contents_digest(made(tmp_path / "1.tar", status, 1), "recipe")
