from pathlib import Path

import pytest

from testbed.software import image
from testbed.software.engine import EngineError, Trouble
from testbed.software.image import build_command, node_image, recipe_digest


class FakeEngine:
    """Holds images by tag; pulls what its registry has."""

    def __init__(self, local: dict[str, str], registry: dict[str, str]) -> None:
        self.local = local
        self.registry = registry
        self.labels: dict[str, dict[str, str]] = {}

    def find_image(self, tag: str) -> str | None:
        return self.local.get(tag)

    def image_labels(self, tag: str) -> dict[str, str]:
        return self.labels.get(tag, {})

    def pull_image(self, tag: str) -> None:
        if tag not in self.registry:
            raise EngineError("no route to registry", Trouble.FAILED, 500)
        self.local[tag] = self.registry[tag]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    tags: list[str] = []

    def build(engine: FakeEngine, tag: str) -> None:
        tags.append(tag)
        engine.local[tag] = "sha256:built"
        engine.labels[tag] = {image.CONTENTS: "sha256:packages"}

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(image.CONFIGURED, raising=False)
    monkeypatch.setattr(image, "_build", build)
    return tags


def test_it_is_built_once(built: list[str]) -> None:
    engine = FakeEngine({}, {})
    assert node_image(engine).id == "sha256:built"
    assert node_image(engine).tag == f"testbed-node:{recipe_digest()}"
    assert built == [f"testbed-node:{recipe_digest()}"]


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


def test_what_is_in_an_image_made_here_is_told_by_its_label(built: list[str]) -> None:
    made = node_image(FakeEngine({}, {}))
    assert (made.id, made.contents) == ("sha256:built", "sha256:packages")


def test_a_changed_recipe_is_another_image(monkeypatch: pytest.MonkeyPatch) -> None:
    before = recipe_digest()
    monkeypatch.setattr(image, "PACKAGES", (*image.PACKAGES, "sudo"))
    assert recipe_digest() != before


def test_sources_are_read_from_standard_input_only_where_there_are_any() -> None:
    assert build_command(Path("/x/root.tar"), ("deb …",))[-3:] == ("bookworm", "/x/root.tar", "-")
    assert build_command(Path("/x/root.tar"), ())[-2:] == ("bookworm", "/x/root.tar")
