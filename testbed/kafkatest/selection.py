"""The tests that were asked for, collected by ducktape itself; what each needs; and those that cannot run here."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results.contract.texts import shortened
from testbed.errors import UsageError
from testbed.kafkatest import collect
from testbed.kafkatest.checkout import KafkaCheckout
from testbed.kafkatest.environment import TestEnvironment

COLLECT_S = 300.0
PARAMETERS = "--parameters"
"""ducktape's option that gives every test these arguments. ducktape refuses it together with a test's own ones."""
VERSION = re.compile(r"\d+\.\d+\.\d+(\.\d+)?")
_NETEM = re.compile(r"DegradedNetworkFaultSpec|\bnetem\b")
_ZOOKEEPER = re.compile(r"^(?!.*\bif\b).*=\s*ZookeeperService\(", re.MULTILINE)
_KIBOSH = re.compile(r"KiboshService\(")
_KERBEROS = re.compile(r"GSSAPI|MiniKdc")
Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class SystemTest:
    """One test with its arguments. `nodes` are the hosts that it declares; `file` is below the checkout."""

    id: str
    file: Path
    cls: str
    function: str
    arguments: Mapping[str, Value]
    nodes: int
    ignored: bool = False

    @property
    def name(self) -> str:
        """Return file, class and function as a user writes them: `throttling_test.ThrottlingTest.test_x`."""
        return f"{self.file.stem}.{self.cls}.{self.function}"

    @property
    def symbol(self) -> str:
        """Return the name by which ducktape runs this test alone."""
        arguments = f"@{json.dumps(dict(self.arguments))}" if self.arguments else ""
        return f"{self.method}{arguments}"

    @property
    def method(self) -> str:
        """Return the name by which ducktape runs this test's method, with all arguments of the method."""
        return f"{self.file}::{self.cls}.{self.function}"

    @property
    def releases(self) -> tuple[str, ...]:
        """Return the releases that its arguments name: each must be on the hosts, too."""
        return tuple(sorted({v for v in self.arguments.values() if isinstance(v, str) and VERSION.fullmatch(v)}))


def argument_text(value: object) -> str:
    """Return the value of a test's argument as text: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def test_environment(checkout: KafkaCheckout) -> dict[str, str]:
    """Return the environment variables of a Python that runs the checkout's tests, and writes nothing into it."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "PYTHONPATH": str(checkout.python_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def collected(checkout: KafkaCheckout, python: TestEnvironment, arguments: Sequence[str]) -> tuple[SystemTest, ...]:
    """Return the tests that ducktape finds for its own `arguments`. Raise `UsageError` when it finds none."""
    with tempfile.TemporaryDirectory(prefix="testbed-kafkatest-") as folder:
        result = Path(folder) / "tests.json"
        # Not by its path: the folder of this file would come first on the search path of modules.
        program = Path(collect.__file__).read_text(encoding="utf-8")
        command = [str(python.program), "-c", program, str(result), *arguments]
        done = subprocess.run(
            command,
            cwd=folder,
            env=test_environment(checkout),
            capture_output=True,
            text=True,
            timeout=COLLECT_S,
            check=False,
        )
        if not result.is_file():
            said = "\n  ".join((done.stderr or done.stdout).strip().splitlines()[-6:])
            raise UsageError(f"ducktape could not collect the tests (exit code {done.returncode}):\n  {said}")
        document: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    if "error" in document or not document["tests"]:
        raise UsageError(f"no test matches: {document.get('error') or 'ducktape collected none'}")
    # `collect` names the members as the fields.
    return tuple(
        SystemTest(**{**each, "file": Path(each["file"]), "nodes": each["nodes"] or 1}) for each in document["tests"]
    )


def hosts_needed(tests: Sequence[SystemTest], given: int | None) -> int:
    """Return the number of hosts to make. Raise `UsageError`, which names the tests, when `given` is too few. Pure."""
    most = max(test.nodes for test in tests)
    if given is None or given >= most:
        return given or most
    names = sorted({f"{test.name} needs {test.nodes}" for test in tests if test.nodes > given})
    shown = "; ".join(shortened(names, 5))
    raise UsageError(f"--host-count {given} is too few: {shown}; --host-count {most} is enough for all")


def obstacle(
    test: SystemTest, source: str, jars: Sequence[str], no_netem: Callable[[], str], missing: Mapping[str, str]
) -> str:
    """Return why a test cannot run here; empty when nothing is known against it. Pure, but for `no_netem`.

    `source` is the text of its file, `jars` are the names of the build's jars, `missing` is release → why it is not
    there.
    """
    arguments = test.arguments
    if test.ignored:
        return "its file marks it as ignored"
    if lacking := [missing[release] for release in test.releases if release in missing]:
        return lacking[0]
    zookeeper = arguments.get("metadata_quorum") == "ZK" or _ZOOKEEPER.search(source)
    if zookeeper and not any(jar.startswith("zookeeper-") for jar in jars):
        return "it needs ZooKeeper, and the build under test has none (Kafka 4.0 removed it): --kafka 3.9.1 has it"
    # Without a delay Trogdor's spec is a rate alone, for which it uses another queue of the kernel.
    if _NETEM.search(source) and arguments.get("latency_ms", 1) and (why := no_netem()):
        return f"it delays packets, and {why}"
    if _KIBOSH.search(source):
        return "it needs Kibosh, a file system in user space that no package of the hosts has"
    if any(isinstance(value, str) and _KERBEROS.search(value) for value in arguments.values()):
        return "it needs Kafka's MiniKdc, whose Apache Directory jars belong to a built checkout's test dependencies"
    return ""


def ducktape_options(
    *,
    parameters: str | None = None,
    globals_: str | None = None,
    repeat: int | None = None,
    max_parallel: int = 1,
) -> tuple[str, ...]:
    """Return ducktape's own arguments for these options. Raise `UsageError` for text that is no JSON object. Pure."""
    for option, text in ((PARAMETERS, parameters), ("--globals", globals_)):
        if text is not None:
            try:
                found = json.loads(text)
            except ValueError as error:
                raise UsageError(f"{option} {text}: not JSON: {error}") from error
            if not isinstance(found, dict):
                raise UsageError(f'{option} {text}: a JSON object is expected, such as {{"bounce_brokers": false}}')
    for option, number in (("--repeats", repeat), ("--max-parallel", max_parallel)):
        if number is not None and number < 1:
            raise UsageError(f"{option} {number}: 1 or more are allowed")
    options = ["--max-parallel", str(max_parallel)]
    options += [PARAMETERS, parameters] if parameters is not None else []
    options += ["--globals", globals_] if globals_ is not None else []
    options += ["--repeat", str(repeat)] if repeat is not None else []
    return tuple(options)
