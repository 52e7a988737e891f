import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.errors import SoftwareError
from testbed.software import image
from testbed.software.commands import CommandError
from testbed.software.distribution import Distribution
from testbed.software.engine import EngineError, Trouble
from testbed.software.image import (
    NODE,
    ImageRecipe,
    ImageRef,
    build_command,
    contents_digest,
    installed_packages,
    node_image,
)


class FakeEngine:
    """Holds images by tag; pulls what its registry has."""

    def __init__(self, local: dict[str, str], registry: dict[str, str]) -> None:
        self.local = local
        self.registry = registry

    def find_image(self, tag: str) -> str | None:
        return self.local.get(tag)

    def image_labels(self, tag: str) -> dict[str, str]:
        return {}

    def pull_image(self, tag: str) -> None:
        if tag not in self.registry:
            raise EngineError("no route to registry", Trouble.FAILED, 500)
        self.local[tag] = self.registry[tag]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    tags: list[str] = []

    def build(engine: FakeEngine, recipe: ImageRecipe) -> ImageRef:
        tags.append(recipe.tag)
        engine.local[recipe.tag] = "sha256:built"
        return ImageRef(recipe.tag, "sha256:built", "sha256:packages")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(image.CONFIGURED, raising=False)
    monkeypatch.setattr(image, "_build", build)
    return tags


def test_it_is_built_once(built: list[str]) -> None:
    engine = FakeEngine({}, {})
    assert node_image(engine).id == "sha256:built"
    assert node_image(engine).tag == NODE.tag
    assert built == [NODE.tag]


def test_a_configured_image_is_pulled(built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(image.CONFIGURED, "mirror:5000/node:7")
    engine = FakeEngine({}, {"mirror:5000/node:7": "sha256:pulled"})
    assert node_image(engine).id == node_image(engine).contents == "sha256:pulled"
    assert built == []


def test_without_its_registry_one_is_built_and_that_is_said(
    built: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(image.CONFIGURED, "mirror:5000/node:7")
    assert node_image(FakeEngine({}, {})).id == "sha256:built"
    assert "=mirror:5000/node:7 cannot be pulled (no route to registry): using one made here" in caplog.text


def test_a_changed_recipe_is_another_image() -> None:
    assert replace(NODE, packages=(*NODE.packages, "sudo")).tag != NODE.tag


def test_sources_are_read_from_standard_input_only_where_there_are_any() -> None:
    assert build_command(Path("/x/root.tar"), ("deb …",), NODE)[-3:] == ("bookworm", "/x/root.tar", "-")
    assert build_command(Path("/x/root.tar"), (), NODE)[-2:] == ("bookworm", "/x/root.tar")


class BuildingEngine(FakeEngine):
    """Builds every image from one root file system, and keeps what it imports."""

    def __init__(self, local: dict[str, str], root: bytes, failure: str = "") -> None:
        super().__init__(local, {})
        self.root, self.failure = root, failure
        self.contexts: list[bytes] = []
        self.removed: list[str] = []
        self.changes: tuple[str, ...] = ()

    def image_labels(self, tag: str) -> dict[str, str]:
        return dict(change.removeprefix("LABEL ").split("=") for change in self.changes[-2:])

    def build_image(self, context: bytes, _log: object) -> str:
        if self.failure:
            raise EngineError(self.failure, Trouble.FAILED)
        self.contexts.append(context)
        return "sha256:intermediate"

    @contextmanager
    def files_of_image(self, image_id: str) -> Iterator[io.BytesIO]:
        assert image_id == "sha256:intermediate"
        yield io.BytesIO(self.root)

    def remove_image(self, image_id: str) -> None:
        self.removed.append(image_id)

    def import_image(self, _tar: object, tag: str, changes: tuple[str, ...]) -> None:
        self.local[tag], self.changes = "sha256:imported", changes


def root_file_system() -> bytes:
    status = b"Package: tini\nStatus: install ok installed\nVersion: 0.19\nArchitecture: amd64\n"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo("var/lib/dpkg/status")
        entry.size = len(status)
        tar.addfile(entry, io.BytesIO(status))
    return buffer.getvalue()


@pytest.fixture
def packages_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(image, "_from_packages", lambda tar, *_sources: tar.write_bytes(root_file_system()))


@pytest.mark.usefixtures("packages_only")
def test_both_ways_give_one_digest_and_say_from_what() -> None:
    on_base = BuildingEngine({image.BASE: "sha256:base"}, root_file_system())
    of_packages = BuildingEngine({}, b"")
    made = [image._build(engine, NODE) for engine in (on_base, of_packages)]
    labels = [engine.image_labels(NODE.tag) for engine in (on_base, of_packages)]
    assert {each.contents for each in made} == {labels[0][image.CONTENTS]} == {labels[1][image.CONTENTS]}
    assert [each[image.ORIGIN] for each in labels] == ["debian:bookworm-slim", "packages"]
    assert on_base.removed == ["sha256:intermediate"]
    assert (len(on_base.contexts), of_packages.contexts) == (1, [])


@pytest.mark.usefixtures("packages_only")
def test_a_build_on_the_base_that_fails_is_told_and_packages_are_used(caplog: pytest.LogCaptureFixture) -> None:
    engine = BuildingEngine({image.BASE: "sha256:base"}, b"", failure="apt-get: exit code 100")
    image._build(engine, NODE)
    assert "cannot be built on debian:bookworm-slim (apt-get: exit code 100; log: " in caplog.text
    assert f"LABEL {image.ORIGIN}=packages" in engine.changes


def test_without_a_registry_and_mmdebstrap_every_way_on_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image.shutil, "which", lambda _: None)
    monkeypatch.setattr(image, "this_distribution", lambda: Distribution.of({"ID": "arch"}))
    with pytest.raises(CommandError, match=r"\(no package of it is here\): install it, load debian:bookworm-slim into"):
        image._from_packages(Path("/x"), (), NODE)
    monkeypatch.setattr(image, "this_distribution", lambda: Distribution.of({"ID": "fedora"}))
    with pytest.raises(CommandError, match=r"dnf install .*mmdebstrap"):
        image._from_packages(Path("/x"), (), NODE)


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
