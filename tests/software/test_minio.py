"""The object store's binary: cached, extracted or built, whichever there is, and said what is missing."""

import pytest

from testbed.software import cache, minio
from testbed.software.engine import EngineError, Trouble


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv(minio.CONFIGURED, raising=False)


class FakeEngine:
    """Has `here`, gets `there` from a registry."""

    def __init__(self, here=(), there=()):
        self.here, self.there = {*here}, {*there}

    def find_image(self, image):
        return "sha256:1" if image in self.here else None

    def pull_image(self, image):
        if image not in self.there:
            raise EngineError("no such host", Trouble.FAILED)
        self.here.add(image)

    def copy_out(self, image, path, target):
        assert (image in self.here, path) == (True, minio.IN_IMAGE)
        target.write_bytes(f"of {image}".encode())


def with_engine(monkeypatch, *there):
    engine = FakeEngine(there=there)
    monkeypatch.setattr(minio.EngineSocket, "from_environment", lambda: engine)


def compiled(monkeypatch, version="go version"):
    """A Go that writes what it was asked for, and says where."""
    commands = []

    def run(command, log, *, env):
        commands.append((command, env))
        target = minio.cache_dir() / "minio-build" / "bin"
        target.mkdir(parents=True)
        (target / "minio").write_bytes(b"compiled")

    monkeypatch.setattr(minio, "run_logged", run)
    monkeypatch.setattr(minio, "go_version", lambda: (1, 24, 8))
    return commands


def test_it_is_built_once_static_and_within_the_cache(monkeypatch):
    with_engine(monkeypatch)
    commands = compiled(monkeypatch)
    assert minio.cached_minio() is None
    said = []
    found = minio.minio(said.append)
    assert found.binary.read_bytes() == b"compiled" and found.binary.stat().st_mode & 0o111
    assert found == minio.minio(said.append) == minio.cached_minio()
    assert found.version == minio.VERSION
    ((command, env),) = commands
    assert command[-1] == f"{minio.MODULE}@{minio.VERSION}" and "-trimpath" in command
    assert env["CGO_ENABLED"] == "0"
    assert all(env[name].startswith(str(minio.cache_dir())) for name in ("GOPATH", "GOBIN", "GOCACHE"))
    assert len(said) == 1 and "once, 5 min" in said[0]
    assert not (minio.cache_dir() / "minio-build").exists()


def test_the_image_spares_the_build(monkeypatch):
    with_engine(monkeypatch, minio.IMAGE)
    monkeypatch.setattr(minio, "run_logged", None)
    monkeypatch.setattr(minio, "go_version", lambda: None)
    found = minio.minio()
    assert found.binary.read_bytes() == f"of {minio.IMAGE}".encode()
    assert found.version == "image-minio-minio-RELEASE.2025-09-07T16-13-09Z"
    assert minio.cached_minio() == found


def test_another_image_is_asked_for(monkeypatch, caplog):
    monkeypatch.setenv(minio.CONFIGURED, "mirror/minio:1")
    with_engine(monkeypatch, "mirror/minio:1")
    assert minio.minio().version == "image-mirror-minio-1"
    monkeypatch.setenv(minio.CONFIGURED, "mirror/minio:2")
    compiled(monkeypatch)
    assert minio.minio().version == minio.VERSION
    assert "the image mirror/minio:2 cannot be pulled" in caplog.text


def test_an_image_that_is_named_comes_before_an_earlier_build(monkeypatch):
    with_engine(monkeypatch, "mirror/minio:1")
    commands = compiled(monkeypatch)
    assert minio.minio().version == minio.VERSION
    monkeypatch.setenv(minio.CONFIGURED, "mirror/minio:1")
    assert minio.cached_minio() is None
    assert minio.minio().version == minio.cached_minio().version == "image-mirror-minio-1"
    monkeypatch.setenv(minio.CONFIGURED, "mirror/minio:2")
    assert minio.minio().version == minio.VERSION
    assert len(commands) == 1


def test_a_damaged_binary_is_made_again(monkeypatch):
    with_engine(monkeypatch)
    commands = compiled(monkeypatch)
    minio.minio().binary.write_bytes(b"other")
    assert minio.cached_minio() is None
    assert minio.minio().binary.read_bytes() == b"compiled"
    assert len(commands) == 2


@pytest.mark.parametrize(("found", "there"), [(None, "go is not installed"), ((1, 19, 8), "go is 1.19.8")])
def test_without_a_go_that_is_new_enough_it_says_what_to_do(monkeypatch, found, there):
    with_engine(monkeypatch)
    monkeypatch.setattr(minio, "go_version", lambda: found)
    with pytest.raises(minio.GoMissing) as refused:
        minio.minio()
    assert f"Go 1.24 or newer; {there}: `./run testbed doctor --fix --with minio`" in str(refused.value)
    assert cache.existing("minio", minio.VERSION) is None


@pytest.mark.parametrize(
    ("text", "version"), [("go1.24.8\n", (1, 24, 8)), ("go1.26", (1, 26)), ("devel", None), ("", None)]
)
def test_versions_of_go(text, version):
    assert minio.parse_go_version(text) == version


def test_a_long_build_tells_how_far_it_is(monkeypatch):
    monkeypatch.setattr(minio, "_REPORT_S", 0.01)
    minio._log().parent.mkdir(parents=True)
    minio._log().write_text("one\ntwo\n")
    said = []
    with minio._reporting(said.append):
        minio.threading.Event().wait(0.1)
    assert "(2 packages)" in said[0] and len(said) < 20
