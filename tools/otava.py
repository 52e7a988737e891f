"""Apache Otava on the same series, for comparison: in a separate environment that is made on demand.

Its pins (numpy, scipy) are not ours, so it is asked through a process: series in, change points out, as JSON.
"""

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from results.contract import durable
from results.series.block import MOST_RUNS, Floats
from tools.calibrate import Alarms, Tool

VERSION = "0.8.0"
RUNS = 30
"""The number of runs from which Otava can judge a series."""
MADE_WITHIN_S = 600
ANALYSED_WITHIN_S = 3600


class OtavaMissing(Exception):
    """Its environment could not be made, or it could not be run: says why, and which folder to remove."""


def environment(cache: Path) -> Path:
    """Return the interpreter of an environment under `cache` that has Otava, made when there is none (half a minute).

    Raises OtavaMissing when it cannot be made.
    """
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"otava-{VERSION}"
    python = folder / "bin" / "python"
    with durable.lock(cache / f"otava-{VERSION}.lock"):
        if (folder / "ready").exists():
            return python
        shutil.rmtree(folder, ignore_errors=True)
        _do([sys.executable, "-m", "venv", str(folder)], folder)
        _do([str(python), "-m", "pip", "install", "--quiet", f"apache-otava=={VERSION}"], folder)
        (folder / "ready").touch()
    return python


def _do(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MADE_WITHIN_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise OtavaMissing(f"Otava's environment {folder} was not made within {MADE_WITHIN_S} s: {command}") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise OtavaMissing(f"Otava's environment {folder} cannot be made: {said}")


def otava(python: Path) -> Tool:
    """Otava with its own defaults (p = 0.001, window 50), each night on the newest 60 runs of a series.

    Its `run` raises OtavaMissing when the process fails. Series without gaps only.
    """

    return Tool(f"otava {VERSION}", RUNS, partial(_judged, python))


def _judged(python: Path, values: Floats, first: int, _seed: int, _store: Floats | None) -> Alarms:
    asked = json.dumps({"series": values.T.tolist(), "first": first, "window": MOST_RUNS})
    script = Path(__file__).with_name("otava_nights.py")
    command = [str(python), "-I", str(script)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=ANALYSED_WITHIN_S, check=False)
    if done.returncode:
        raise OtavaMissing(f"{' '.join(command)}: {(done.stderr.strip() or 'no message').splitlines()[-1]}")
    found = json.loads(done.stdout)
    return [(night, at, begun) for at, each in enumerate(found) for night, begun in each]
