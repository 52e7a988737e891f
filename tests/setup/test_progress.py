import io
import logging

from fakes.checks import FakeCheck

from testbed.setup.check import probe_all
from testbed.setup.fix import FixProgress, longest_chain_s, put_right


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(out: io.StringIO, *checks: FakeCheck) -> None:
    with FixProgress(checks, out) as progress:
        put_right(checks, probe_all(checks), progress)


def test_without_a_terminal_lines_are_plain() -> None:
    out = io.StringIO()
    run(out, FakeCheck("jars"), FakeCheck("image", "jars", failure="no room"))
    assert out.getvalue().splitlines() == [
        "making jars: begun (about 1 s)",
        "making jars: done in 0 s",
        "making image: begun (about 1 s)",
        "making image: FAILED after 0 s",
    ]
    assert "\x1b" not in out.getvalue()


def test_on_a_terminal_one_block_is_redrawn_with_elapsed_and_estimate() -> None:
    out = Terminal()
    jars, image = FakeCheck("jars"), FakeCheck("image", "jars")
    jars.estimate_s, image.estimate_s = 20.0, 40.0  # type: ignore[misc]
    progress = FixProgress([jars, image], out, ["jars", "image"])
    progress.begun(jars)
    (now,) = progress._begun_at.values()
    lines = progress.block(now + 5)
    assert lines[0].split() == ["making", "jars", "5", "s", "of", "about", "20", "s"]
    assert lines[1].split() == ["ready", "in", "about", "55", "s"]
    progress.say("a warning")
    progress.ended(jars, "done in 21 s")
    assert "a warning\n" in out.getvalue()
    assert out.getvalue().endswith("making jars: done in 21 s\n")


def test_a_step_that_takes_longer_than_estimated_never_promises_the_past() -> None:
    jars = FakeCheck("jars")
    progress = FixProgress([jars], Terminal())
    progress.begun(jars)
    (now,) = progress._begun_at.values()
    assert progress.block(now + 100)[1].split() == ["ready", "in", "about", "1", "s"]


def test_warnings_of_the_work_are_shown_as_it_goes() -> None:
    out = io.StringIO()

    def warn() -> None:
        logging.getLogger("testbed.software.cache").warning("%s is damaged", "/x")

    run(out, FakeCheck("jars", during=warn))
    assert "/x is damaged" in out.getvalue().splitlines()


def test_the_whole_takes_as_long_as_its_longest_chain() -> None:
    needs = {"image": ("packages",), "jars": ("packages",), "archive": ("image", "jars"), "pip": ()}
    left = {"packages": 20.0, "image": 40.0, "jars": 10.0, "archive": 7.0, "pip": 30.0}
    assert longest_chain_s(needs, left) == 67.0
    assert longest_chain_s(needs, {"archive": 7.0, "jars": 2.0}) == 9.0
    assert longest_chain_s(needs, {}) == 0.0
