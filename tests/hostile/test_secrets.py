"""A marked password goes through a command: no output, file, process list or environment has it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.cli.main import main
from testbed.kafka.command_config import CommandConfig
from testbed.objectstore.server import Credentials

MARK = "marked-7f3a-secret"
LOOK_S = 5.0
ROOT = Path(__file__).parents[2]
LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{MARK}";'
GOOD = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={LOGIN}\nrequest.timeout.ms=1500\n"
BAD = {
    "an unknown property": GOOD + f"sasl.unknown.password={MARK}\n",
    "a cut login": GOOD.replace(LOGIN, f'X required password="{MARK}'),
    "an unknown option": GOOD.replace("password=", "passwort="),
    "a store that is missing": f"security.protocol=SSL\nssl.keystore.location=/nowhere\nssl.keystore.password={MARK}\n",
    "a key that is none": f"security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.key={MARK}\n",
    "a bad escape": GOOD + f"ssl.key.password={MARK}\\u00zz\n",
}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    for name in ("STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return tmp_path


def marked_files(folder):
    return [path for path in folder.rglob("*") if path.is_file() and MARK.encode() in path.read_bytes()]


def test_a_password_is_in_no_output_file_or_process_list(folders):
    config = folders / "client.properties"
    config.write_text(GOOD)
    words = [
        "capture",
        "seen",
        "--bootstrap",
        "127.0.0.1:1",
        "--command-config",
        str(config),
        "--out",
        str(folders / "o"),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "testbed.cli.main", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    seen = set()
    deadline = time.monotonic() + LOOK_S
    while process.poll() is None and time.monotonic() < deadline:
        for each in Path("/proc").glob("[0-9]*"):
            try:
                shown = (each / "cmdline").read_bytes() + (each / "environ").read_bytes()
            except OSError:
                continue
            if MARK.encode() in shown and each.name != str(os.getpid()):
                seen.add(each.name)
        time.sleep(0.02)  # between two looks at every process
    process.terminate()
    told, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert time.monotonic() >= deadline or b"127.0.0.1:1" in told, "it has tried to connect"
    assert MARK.encode() not in told
    assert seen == set()
    assert marked_files(folders) == [config]


@pytest.mark.parametrize("name", BAD)
def test_a_file_with_a_mistake_is_refused_without_its_password(folders, capsys, name):
    config = folders / "client.properties"
    config.write_text(BAD[name])
    assert main(["capture", "seen", "--bootstrap", "127.0.0.1:1", "--command-config", str(config)]) != 0
    told = capsys.readouterr()
    assert "client.properties" in told.err + told.out
    assert MARK not in told.err + told.out


def test_no_representation_has_a_password(tmp_path):
    config = tmp_path / "client.properties"
    config.write_text(GOOD)
    found = CommandConfig.load(config)
    for shown in (repr(found), str(found), repr(found.kafka_python())):
        assert MARK not in shown
    assert MARK not in repr(Credentials(MARK, MARK))
    with pytest.raises(ValueError) as refused:
        Credentials.parse(f"secret_key={MARK}")
    assert MARK not in str(refused.value)
