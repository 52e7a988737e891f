"""The library of clock-skew: that of the node image's Debian release, on whatever distribution this machine has."""

import os
import shutil

import pytest

from testbed.errors import SoftwareError
from testbed.paths import cache_dir
from testbed.software import faketime
from testbed.software.distribution import Distribution
from testbed.software.engine import EngineError, Trouble
from testbed.software.image import ImageRef

DEBIAN_12 = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
OTHERS = (
    {"ID": "ubuntu", "ID_LIKE": "debian", "VERSION_CODENAME": "noble"},
    {"ID": "debian", "VERSION_CODENAME": "trixie"},
    {"ID": "fedora"},
)


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def on(monkeypatch, release):
    monkeypatch.setattr(faketime, "this_distribution", lambda: Distribution.of(release))


class FakeEngine:
    def __init__(self):
        self.asked = []

    def ping(self):
        self.asked.append("ping")

    def copy_out(self, image, path, target):
        self.asked.append(f"copy {path} of {image}")
        target.write_bytes(b"of the image")

    def remove_image(self, image):
        self.asked.append(f"remove {image}")


def programs(monkeypatch, tmp_path, **scripts):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_apt_of_the_same_release_fetches_it_once_through_the_users_proxy(monkeypatch, tmp_path):
    on(monkeypatch, DEBIAN_12)
    programs(
        monkeypatch,
        tmp_path,
        apt_get=f'test "$http_proxy" = http://proxy:3128 && echo x >> {tmp_path}/calls && touch libfaketime.deb',
        dpkg=f"mkdir lib && echo library > lib/{faketime.LIBRARY}",
    )
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert faketime.no_library() == ""
    assert faketime.cached_library() is None
    for _again in range(2):
        assert faketime.library().read_bytes() == b"library\n"
    assert (tmp_path / "calls").read_text() == "x\n"
    assert sorted(path.name for path in faketime.library().parent.iterdir()) == [".artefact.json", faketime.LIBRARY]


def test_a_package_without_the_library_leaves_nothing(monkeypatch, tmp_path):
    on(monkeypatch, DEBIAN_12)
    programs(monkeypatch, tmp_path, apt_get="touch libfaketime.deb", dpkg="true")
    with pytest.raises(SoftwareError, match="Debian's package libfaketime has no libfaketimeMT"):
        faketime.library()
    assert faketime.cached_library() is None


@pytest.mark.parametrize("release", OTHERS)
def test_elsewhere_it_comes_from_an_image_of_the_hosts_release(release, monkeypatch):
    """Ubuntu 24.04's own needs GLIBC_2.38, and the hosts have 2.36: Kafka did not start with it."""
    on(monkeypatch, release)
    engine = FakeEngine()
    monkeypatch.setattr(faketime.EngineSocket, "from_environment", lambda: engine)
    monkeypatch.setattr(faketime, "made_image", lambda recipe: ImageRef(recipe.tag, "sha256:1", "sha256:2"))
    assert faketime.no_library() == ""
    for _again in range(2):
        assert faketime.library().read_bytes() == b"of the image"
    path = f"/usr/lib/{os.uname().machine}-linux-gnu/faketime/{faketime.LIBRARY}"
    tag = faketime.RECIPE.tag
    assert engine.asked == ["ping", f"copy {path} of {tag}", f"remove {tag}"]
    assert faketime.RECIPE.packages == ("libfaketime",)
    assert faketime.no_library() == ""
    assert engine.asked[-1] == f"remove {tag}"  # what is in the cache needs no engine


def test_without_an_engine_another_distribution_cannot_fetch_it(monkeypatch):
    def refuse(_engine):
        raise EngineError("no container engine at unix:///s", Trouble.ABSENT)

    on(monkeypatch, OTHERS[0])
    monkeypatch.setattr(faketime.EngineSocket, "ping", refuse)
    assert faketime.no_library() == (
        "libfaketime of Debian bookworm is not in the cache, and this machine fetches it through a container engine: "
        "no container engine at unix:///s; start one, or run `testbed doctor --fix --with clock-skew` on a machine of "
        "this architecture that has one, and copy faketime/bookworm from its cache to "
        f"{cache_dir() / 'faketime' / 'bookworm'}"
    )


def test_the_library_of_another_machines_cache_needs_no_engine(monkeypatch, tmp_path):
    """The folder that the refusal names is complete: it has the record by which the cache verifies it."""
    on(monkeypatch, DEBIAN_12)
    programs(
        monkeypatch, tmp_path, apt_get="touch libfaketime.deb", dpkg=f"mkdir lib && echo x > lib/{faketime.LIBRARY}"
    )
    folder = faketime.library().parent
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of-this-machine"))
    on(monkeypatch, OTHERS[0])
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    why = faketime.no_library()
    assert "; start one, or run `testbed doctor --fix --with clock-skew` on a machine" in why
    shutil.copytree(folder, why.rpartition(" to ")[2])
    assert faketime.no_library() == ""
    assert faketime.library().read_bytes() == b"x\n"
