import logging
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.setup import environment as env
from testbed.setup.environment import (
    CHECKOUT,
    VirtualEnvironment,
    environment,
    make,
    parse_pip_settings,
    uv_variables,
    variables,
)
from testbed.software.commands import CommandError


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in (env.LOCK, env.INSTALLER_LOCK):
        (folder / name).write_text(name)
    return folder


def fake_build(wanted: VirtualEnvironment, log: Path) -> None:
    (wanted.folder / "bin").mkdir(parents=True)
    wanted.python.touch()


def test_it_is_another_one_for_another_lock_file_or_checkout(checkout: Path, tmp_path: Path) -> None:
    first = environment(checkout)
    assert environment(checkout) == first
    (checkout / env.LOCK).write_text("changed")
    second = environment(checkout)
    shutil.copytree(checkout, tmp_path / "elsewhere")
    assert len({first.folder, second.folder, environment(tmp_path / "elsewhere").folder}) == 3


def test_it_is_complete_only_when_made_to_the_end(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = environment(checkout)

    def killed(made: VirtualEnvironment, log: Path) -> None:
        fake_build(made, log)
        (made.folder / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(env, "_build", killed)
    with pytest.raises(KeyboardInterrupt):
        make(wanted)
    assert not wanted.complete
    monkeypatch.setattr(env, "_build", fake_build)
    make(wanted)
    assert wanted.complete
    assert not (wanted.folder / "half").exists()
    monkeypatch.setattr(env, "_build", killed)
    make(wanted)  # complete: not built again


def test_without_its_interpreter_it_is_not_complete(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "_build", fake_build)
    wanted = environment(checkout)
    make(wanted)
    wanted.python.unlink()
    assert not wanted.complete


def test_an_environment_of_another_user_is_used(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may have made it in an image, for the user of a job."""

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "utime", refuse)
    env.mark_used(environment(checkout))


def test_old_environments_of_this_checkout_go_others_stay(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "_build", fake_build)
    old = environment(checkout)
    make(old)
    recent = VirtualEnvironment(old.folder.with_name("venv-recent"), checkout)
    foreign = VirtualEnvironment(old.folder.with_name("venv-foreign"), checkout / "other")
    make(recent)
    make(foreign)
    long_ago = time.time() - 30 * 86_400
    for made in (old, foreign):
        os.utime(made.folder / env.STAMP, (long_ago, long_ago))
    (checkout / env.LOCK).write_text("changed")
    make(environment(checkout))
    assert not old.folder.exists()
    assert recent.complete
    assert foreign.complete


def test_when_uv_fails_pip_is_tried_and_that_is_said(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[list[str]] = []

    def create(folder: Path, log: Path) -> None:
        (folder / "bin").mkdir(parents=True)
        (folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)

    def run(argv: list[object], log: Path, **_: object) -> None:
        ran.append([Path(str(word)).name for word in argv])
        if ran[-1][0] == "uv":
            raise CommandError("uv: exit code 2", log)

    monkeypatch.setattr(env, "_create", create)
    monkeypatch.setattr(env, "run_logged", run)
    monkeypatch.setattr(env, "_pip_settings", lambda _: {})
    wanted = environment(checkout)
    with caplog.at_level(logging.WARNING):
        env._build(wanted, checkout / "log")
    assert "uv could not install the environment" in caplog.text
    assert [words[0] for words in ran] == ["python", "uv", "python"]
    assert all("--require-hashes" in words for words in ran)
    assert f"exec' {wanted.python} " in (wanted.folder / "bin" / "testbed").read_text()


def test_an_interpreter_without_pip_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(1, ["ensurepip"])

    monkeypatch.setattr(env.venv, "create", refuse)
    with pytest.raises(CommandError, match="cannot make a virtual environment with pip"):
        env._create(tmp_path / "venv", tmp_path / "log")


def test_the_command_starts_in_a_home_folder_with_blanks_in_its_name(tmp_path: Path) -> None:
    """The kernel would end the interpreter's path at the first blank."""
    wanted = VirtualEnvironment(tmp_path / "Ada's home, of 1815" / "venv", tmp_path / "my checkout")
    (wanted.folder / "bin").mkdir(parents=True)
    (wanted.folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    package = wanted.checkout / "testbed" / "cli"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "main.py").write_text("import sys\n\n\ndef main():\n    print(sys.argv[1:])\n    return 3\n")
    wanted.python.symlink_to(sys.executable)
    env._put_on_path(wanted)
    settings = {"PATH": os.environ["PATH"], "PYTHONPATH": str(wanted.checkout)}
    command = [wanted.folder / "bin" / "testbed", "plan", "a b"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=settings, cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("['plan', 'a b']\n", "", 3)


def test_a_program_in_the_environment_sees_only_the_environment(checkout: Path) -> None:
    wanted = environment(checkout)
    inherited = {"PATH": "/bin", "PYTHONPATH": "/foreign", "PYTHONHOME": "/x", "LANG": "C"}
    changed = variables(wanted, {**inherited, "PYTHONDONTWRITEBYTECODE": "1"})
    assert changed["PATH"] == f"{wanted.folder}/bin:/bin"
    assert changed["VIRTUAL_ENV"] == str(wanted.folder)
    assert changed["LANG"] == "C"
    assert "PYTHONPATH" not in changed
    assert "PYTHONHOME" not in changed
    assert "PYTHONDONTWRITEBYTECODE" not in changed


@pytest.mark.parametrize("name", [env.LOCK, env.INSTALLER_LOCK])
def test_the_lock_files_pin_everything_by_digest_and_name_no_registry(name: str) -> None:
    text = (CHECKOUT / name).read_text()
    assert "http" not in text
    entries = re.split(r"\n(?=[a-z])", "\n" + "\n".join(x for x in text.splitlines() if not x.startswith("#")))
    pins = [entry for entry in entries if entry.strip()]
    assert pins
    assert all("==" in entry and "--hash=sha256:" in entry for entry in pins)


def test_the_lock_file_has_every_direct_dependency() -> None:
    import tomllib

    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = [name for names in project["optional-dependencies"].values() for name in names]
    wanted = {*project["dependencies"], *extras} - {name for name in extras if name.startswith("testbed[")}
    pinned = set(re.findall(r"(?m)^([a-z0-9-]+)==", (CHECKOUT / env.LOCK).read_text()))
    assert {re.split(r"[>=<\[]", name)[0].lower() for name in wanted} <= pinned


LISTING = """\
:env:.cert='/env.pem'
global.cert='/global.pem'
global.extra-index-url='mirror://two\\nmirror://three'
global.index-url='mirror://one'
install.trusted-host='host'
download.index-url='mirror://other'
something else
"""


def test_pips_settings_in_pips_order_of_precedence() -> None:
    assert parse_pip_settings(LISTING) == {
        "cert": "/env.pem",
        "extra-index-url": "mirror://two\nmirror://three",
        "index-url": "mirror://one",
        "trusted-host": "host",
    }


def test_uv_is_told_in_its_own_words() -> None:
    assert uv_variables(parse_pip_settings(LISTING)) == {
        "SSL_CERT_FILE": "/env.pem",
        "UV_INDEX": "mirror://two mirror://three",
        "UV_DEFAULT_INDEX": "mirror://one",
        "UV_INSECURE_HOST": "host",
    }


def test_local_wheels_no_index_and_a_proxy() -> None:
    assert uv_variables({"find-links": "/a /b", "no-index": "true", "proxy": "proxy:3128"}) == {
        "UV_FIND_LINKS": "/a,/b",
        "UV_NO_INDEX": "1",
        "HTTP_PROXY": "proxy:3128",
        "HTTPS_PROXY": "proxy:3128",
    }


def test_settings_that_uv_has_no_word_for_are_left() -> None:
    assert uv_variables({"index": "x", "no-index": "false", "find-links": ""}) == {}
