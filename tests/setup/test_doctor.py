import errno
import json

import pytest
from fakes.checks import FakeCheck

from testbed.setup import doctor, fix, main
from testbed.setup.check import FIX_ALL, ordered
from testbed.setup.checks import catalogue

GOOD = FakeCheck("disk", ok=True)


def test_the_catalogue_makes_sense() -> None:
    checks = catalogue.all_checks()
    assert len(ordered(checks)) == len(checks)
    more = catalogue.all_checks(catalogue.OPTIONAL)
    assert len(ordered(more)) == len(more) > len(checks)


def test_what_not_everybody_needs_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(doctor, "all_checks", lambda names: asked.append(list(names)) or (GOOD,))
    assert (doctor.main([]), doctor.main(["--with", "minio", "--with=minio"])) == (0, 0)
    assert asked == [[], ["minio"]]
    with pytest.raises(SystemExit) as ended:
        doctor.main(["--with", "mini"])
    assert ended.value.code == main.EX_USAGE


def test_all_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main([], [GOOD]) == 0
    assert capsys.readouterr().out == "ok       disk  there\n"


def test_what_is_missing_is_told_with_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main([], [GOOD, FakeCheck("jars")]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "MISSING  jars  no jars",
        f"               to repair it: {FIX_ALL}",
    ]


def test_what_is_optional_does_not_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main([], [FakeCheck("netem", required=False, fixable=False)]) == 0
    assert capsys.readouterr().out == "without  netem  no netem\n"


def test_json_has_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--json"], [GOOD, FakeCheck("jars")]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "ok": False,
        "findings": [
            {"name": "disk", "ok": True, "what": "there", "fix_command": "", "required": True},
            {"name": "jars", "ok": False, "what": "no jars", "fix_command": FIX_ALL, "required": True},
        ],
    }


def test_fix_puts_right_and_keeps_json_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--fix", "--json"], [FakeCheck("jars")]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["ok"] is True
    assert "making jars: done" in captured.err


def test_a_fix_that_fails_is_told_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--fix"], [FakeCheck("jars", failure="mirror gone\n  whole log: /x")]) == 1
    out = capsys.readouterr().out
    assert "               mirror gone\n                 whole log: /x\n" in out


def test_nothing_is_begun_when_something_required_cannot_be_mended(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal: list[str] = []
    checks = (FakeCheck("memory", fixable=False), FakeCheck("image", journal=journal))
    monkeypatch.setattr(catalogue, "all_checks", lambda: checks)
    assert main.main(["demo"]) == 69
    assert journal == []
    assert "memory: no memory" in capsys.readouterr().err


def elsewhere() -> tuple[FakeCheck, ...]:
    """Another system: neither memory nor packages can be judged there."""
    platform = FakeCheck("platform", fixable=False)
    return (
        platform,
        FakeCheck("memory", "platform", fixable=False),
        FakeCheck("packages", "platform"),
        FakeCheck("kernel", "packages", fixable=False, required=False),
    )


def test_of_another_system_one_thing_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "all_checks", elsewhere)
    assert main.main(["demo"]) == 69
    assert capsys.readouterr().err.splitlines()[:-1] == ["platform: no platform"]
    assert doctor.main([], elsewhere()) == 1
    assert capsys.readouterr().out == "MISSING  platform  no platform\n"
    assert doctor.main(["--json"], elsewhere()) == 1
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 4


def test_what_follows_from_a_failed_fix_is_not_told_as_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = (FakeCheck("engine", failure="as root: start it"), FakeCheck("image", "engine"), FakeCheck("go", "engine"))
    command = "sudo apt-get install go"
    monkeypatch.setattr(checks[2], "probe", lambda: checks[2].bad("no go", command))
    monkeypatch.setattr(catalogue, "all_checks", lambda: checks)
    assert main.main(["demo"]) == 69
    told = capsys.readouterr().err
    assert "engine: as root: start it\n" in told
    assert f"go: no go (not tried, since this failed: engine)\n  to repair it: {command}\n" in told
    assert "no image" not in told


def test_what_only_its_need_can_mend_is_not_hopeless() -> None:
    kernel = FakeCheck("kernel", "packages", fixable=False)

    def install() -> None:
        kernel.ok = True

    assert fix.make_ready([FakeCheck("packages", during=install), kernel]).ok


def test_a_failed_set_up_ends_with_69_the_reason_and_how_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = (FakeCheck("image", failure="mmdebstrap: exit code 25\n    E: no mirror\n  whole log: /x/log"),)
    monkeypatch.setattr(catalogue, "all_checks", lambda: checks)
    assert main.main(["test"]) == 69
    told = capsys.readouterr().err
    assert "image: mmdebstrap: exit code 25\n    E: no mirror\n  whole log: /x/log\n" in told
    assert "Repair this, then run the same command again" in told


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/home/ada/.cache"), "it belongs to another user, such as"),
        (
            OSError(errno.ENOLCK, "No locks available", "/home/ada/.cache"),
            "its file system cannot lock files",
        ),
        (
            OSError(errno.EROFS, "Read-only file system", "/home/ada/.cache"),
            "name folders on another file system",
        ),
    ],
)
def test_a_folder_that_cannot_be_used_is_named_without_a_traceback(
    error: OSError, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise error

    monkeypatch.setattr(main, "environment", refuse)
    assert main.main(["testbed", "plan", "three-brokers"]) == 69
    assert capsys.readouterr().err.startswith(f"run: {error.strerror} (/home/ada/.cache); {said}")
    outcome = fix.make_ready([FakeCheck("environment", during=refuse)])
    assert outcome.failures["environment"].startswith(f"{error.strerror} (/home/ada/.cache); {said}")


def test_a_defect_of_set_up_is_shown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(main, "environment", refuse)
    with pytest.raises(OSError, match="Input/output error"):
        main.main(["testbed", "plan", "three-brokers"])


def test_usage() -> None:
    assert main.main(["nonsense"]) == 64
    assert main.main(["demo", "extra"]) == 64
    assert main.main([]) == 0
