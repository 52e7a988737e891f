"""The agent's own tests, and a JVM that was asked to be broken: it never runs unchanged."""

import subprocess

import pytest

from testbed.defects.agent import PROJECT, agent_jar, parse_notes
from testbed.software.cache import artefact, digest_of, sha256_of
from testbed.software.commands import find_java


@pytest.fixture
def jvm(tmp_path):
    """Return what runs the agent in a JVM whose class path has no Kafka, and the file of its notes."""
    notes = tmp_path / "notes"

    def run(option):
        jar, command = agent_jar(), find_java().command
        flags = [f"-javaagent:{jar}={option}", f"-Dtestbed.defects.file={notes}"]
        arguments = [str(command), *flags, "-cp", str(jar), "testbed.defects.Check", "--list"]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)

    return run, notes


def test_the_java_tests_of_the_agent_pass():
    """They run again when a source, a test or the version of Java changes: nothing else can break them."""
    files = sorted(path for path in PROJECT.sources.rglob("*") if path.is_file() and "target" not in path.parts)
    digest = digest_of([(str(path.relative_to(PROJECT.sources)), sha256_of(path)) for path in files])

    def run(folder):
        PROJECT.run(["test"])
        (folder / "passed").write_text(f"{digest}\n")

    artefact("java-tests", f"defects-{digest[:16]}-java-{find_java().major}", run)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("", "no defect named"),
        ("late-isr;late-isr", "late-isr is named twice"),
        ("tardy-isr", "no defect tardy-isr; there are follower-throttle-leak"),
        ("late-isr,minutes=1", "late-isr has no parameter minutes; it has seconds"),
        ("late-isr,seconds=-1", "late-isr: seconds=-1 is not a number from 0 to 3600"),
        ("late-isr", "late-isr: this Kafka has no kafka.cluster.Partition.isFollowerInSync(Replica)"),
        ("metadata-stampede", "no properties file in the command line"),
    ],
)
def test_a_jvm_that_cannot_be_broken_as_asked_ends(jvm, option, told):
    run, notes = jvm
    done = run(option)
    assert done.returncode == 3
    assert not done.stdout
    assert done.stderr.startswith("testbed-defects: ") and done.stderr.count("\n") == 1
    assert told in done.stderr
    assert not notes.exists()


def test_a_jvm_notes_what_it_loaded(jvm):
    run, notes = jvm
    done = run("error-line,every=60;cpu-burn,share=0")
    assert (done.returncode, done.stderr) == (0, "")
    assert [(note.name, note.what) for note in parse_notes(notes.read_text())] == [
        ("error-line", "loaded"),
        ("cpu-burn", "loaded"),
    ]


def test_notes_that_cannot_be_written_end_the_jvm(jvm):
    run, notes = jvm
    notes.mkdir()
    done = run("error-line")
    assert done.returncode == 3
    assert f"{notes} cannot be written" in done.stderr
