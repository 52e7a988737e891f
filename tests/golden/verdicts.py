"""The verdicts and values of recorded runs, as they were before the code was reorganised.

`recorded.tar.xz` holds the 287 different runs that the tests of `results` judged on 2026-11-23: a manifest and two
Parquet tables each. `results/example` holds 222 runs of real brokers. `expected.json.xz` holds, for every run, its
verdict, its exit code, its criteria and its values. `./run exec python tests/golden/verdicts.py` writes it again: only
an intended, explained change of the judgement may do so.
"""

import io
import json
import lzma
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

import results
from results.compare.compared_measures import values_of
from results.contract.archive import import_runs
from results.contract.manifest import Manifest
from results.contract.store import Store
from results.criteria import judge

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.tar.xz"
EXPECTED = HERE / "expected.json.xz"
EXAMPLE = Path(results.__file__).parent / "example"
EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 2}

Run = tuple[str, Manifest, Any, Any]


def recorded() -> Iterator[Run]:
    """Yield name, manifest, samples and events of every run that the tests recorded."""
    with tarfile.open(RECORDED) as archive:
        files = {Path(member.name).name: archive.extractfile(member).read() for member in archive if member.isfile()}
    for name in sorted(name for name in files if name.endswith(".json")):
        key = name.removesuffix(".json")
        samples, events = (pq.read_table(io.BytesIO(files[f"{key}.{kind}.parquet"])) for kind in ("samples", "events"))
        yield key, Manifest.from_json(files[name].decode()), samples, events


def example() -> Iterator[Run]:
    """Yield run id, manifest, samples and events of every run of the example history."""
    with TemporaryDirectory() as folder:
        store = Store.open(folder)
        for archive in sorted(EXAMPLE.glob("*.tar")):
            done = import_runs(store, archive)
            assert done.problems == []
        for run_id in store.runs():
            yield run_id, store.manifest(run_id), store.samples(run_id), store.events(run_id)


def judged(run: Run) -> dict[str, Any]:
    """Return what the judgement says of one run, as JSON has it."""
    _, manifest, samples, events = run
    judgement = judge(manifest, samples, events)
    return {
        "verdict": judgement.verdict,
        "exit": EXIT_CODES[judgement.verdict],
        "criteria": [[c.name, c.host, c.direction, c.verdict, c.observed] for c in judgement.criteria],
        "values": dict(values_of(manifest, judgement.measures)) if manifest.move or manifest.relocation else {},
    }


def expected() -> Mapping[str, Mapping[str, Any]]:
    """Return what was recorded: kind of run, then name, then judgement."""
    with lzma.open(EXPECTED, "rt", encoding="utf-8") as stream:
        return json.load(stream)


def main() -> None:
    """Write the judgements of today's code."""
    found = {kind.__name__: {run[0]: judged(run) for run in kind()} for kind in (recorded, example)}
    with lzma.open(EXPECTED, "wt", encoding="utf-8") as stream:
        json.dump(found, stream, sort_keys=True, indent=0)
    print({kind: len(runs) for kind, runs in found.items()}, file=sys.stderr)


if __name__ == "__main__":
    main()
