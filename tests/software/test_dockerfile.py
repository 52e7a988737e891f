"""The Dockerfile and mmdebstrap's command follow from one recipe."""

import io
import subprocess
import tarfile

import pytest

from testbed.software import image
from testbed.software.image import BASE, CHANGES, NODE, OPTIONS, PACKAGES, build_context


def text(**named):
    return image.dockerfile(BASE, PACKAGES, OPTIONS, CHANGES, **named)


def test_the_recipe_of_existing_histories_is_kept():
    """A change of this digest ends the environment class of every history: change it knowingly."""
    assert NODE.digest == "962175de44fa"


def test_every_package_and_change_of_the_recipe_is_in_it():
    lines = text().splitlines()
    assert lines[0] == "FROM debian:bookworm-slim"
    [install] = [line for line in lines if "install" in line]
    assert install.rstrip("; \\").split()[-len(PACKAGES) :] == list(PACKAGES)
    assert lines[-len(CHANGES) :] == list(CHANGES)
    assert 'rm -f "$1"/etc/ssh/ssh_host_*' in text()
    assert not any(line.startswith("COPY") for line in lines)


def test_its_one_step_is_a_shell_script():
    step = text(own_apt=True).partition("RUN ")[2].partition("\nLABEL")[0]
    assert subprocess.run(["sh", "-n", "-c", step], capture_output=True, check=False).stderr == b""


def test_the_machines_settings_of_apt_leave_again():
    own = text(own_apt=True)
    assert "COPY apt /tmp/apt\n" in own
    *_, last = (line for line in own.splitlines() if "rm -rf" in line)
    assert "/tmp/apt" in last


def test_an_option_without_an_equivalent_is_refused():
    with pytest.raises(ValueError, match="no equivalent of mmdebstrap's option --essential-hook"):
        image.dockerfile(BASE, PACKAGES, (*OPTIONS, "--essential-hook=true"), CHANGES)


def test_a_hook_of_another_recipe_gets_the_root_as_its_argument():
    own = image.dockerfile(BASE, ("sudo",), ('--customize-hook=chroot "$1" useradd u',), ())
    assert "set -e -- /" in own
    assert 'chroot "$1" useradd u' in own


def test_the_context_has_the_machines_apt_only_with_sources(monkeypatch):
    monkeypatch.setattr(image, "fetch_settings", lambda: 'Acquire::Retries "3";\n')
    monkeypatch.setattr(image, "credentials", lambda: "machine m login l password p\n")

    def members(sources):
        with tarfile.open(fileobj=io.BytesIO(build_context("FROM x\n", sources))) as tar:
            return {each.name: tar.extractfile(each).read().decode() for each in tar}

    assert members(()) == {"Dockerfile": "FROM x\n"}
    assert members(("deb mirror://a bookworm main",)) == {
        "Dockerfile": "FROM x\n",
        "apt/sources.list": "deb mirror://a bookworm main\n",
        "apt/apt.conf": 'Acquire::Retries "3";\n',
        "apt/auth.conf": "machine m login l password p\n",
    }
