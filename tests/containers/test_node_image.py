"""The node image made on Debian's official image, as where a registry gives it: the same packages as without one."""

import subprocess

import pytest

from testbed.software import image
from testbed.software.apt import host_sources
from testbed.software.engine import EngineSocket

pytestmark = pytest.mark.containers
TAG = "testbed-node-on-base:test"


@pytest.fixture
def base(tmp_path):
    """The engine with the base under its official name; what was not there before is removed again."""
    engine = EngineSocket.from_environment()
    made = engine.find_image(image.BASE) is None
    if made:
        tar = tmp_path / "base.tar"
        sources = "".join(f"{line}\n" for line in host_sources(image.SUITE))
        command = ["mmdebstrap", "--variant=minbase", image.SUITE, str(tar), *(["-"] if sources else [])]
        subprocess.run(command, input=sources, text=True, capture_output=True, check=True)
        with tar.open("rb") as stream:
            engine.import_image(stream, image.BASE, ())
    yield engine
    for tag in (TAG, *([image.BASE] if made else [])):
        if engine.find_image(tag) is not None:
            engine.remove_image(tag)


def names(engine, tag):
    """The names of an image's installed packages; versions may have changed since the other image was made."""
    with engine.container({"Image": tag, "Entrypoint": [], "Cmd": ["cat", "/var/lib/dpkg/status"]}) as container:
        status = "\n".join(container.output())
    return {line.split()[0] for line in image.installed_packages(status)}


@pytest.mark.nightly
def test_it_has_the_same_packages_and_nothing_of_the_build(base):
    image._build(base, TAG)
    labels = base.image_labels(TAG)
    assert labels[image.ORIGIN] == image.BASE
    assert labels["testbed.image"] == "node"
    definition = {
        "Image": TAG,
        "Entrypoint": [],
        "Cmd": [
            "sh",
            "-c",
            "find /tmp /var/lib/apt/lists -mindepth 1; ls /etc/dpkg/dpkg.cfg.d /etc/ssh | grep -v :; java -version",
        ],
    }
    with base.container(definition) as container:
        said = "\n".join(container.output())
    assert [part for part in ("/tmp/", "/lists/", "testbed\n", "ssh_host_") if part in said] == []
    assert 'openjdk version "17' in said
    assert names(base, TAG) >= set(image.PACKAGES)
    assert names(base, TAG) == names(base, image.node_image(base).tag)
