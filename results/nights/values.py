"""The values of a run as rows of the values table: one number for each metric. Pure.

A *scenario* is an experiment with its parameters; a *series* is one metric of it in one class of environment. Kafka's
version and the commit are no part of either: they are what changes along a series.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from results.compare.compared_measures import measures as compared_measures
from results.compare.log_lines import line_kinds
from results.contract.aliases import first_measure_name
from results.contract.defect import in_words
from results.contract.manifest import Manifest
from results.criteria.catalogue.command_time import CPU_SECONDS, SECONDS
from results.criteria.catalogue.nic_measured import NIC_HIGHEST, NIC_LOWEST
from results.criteria.catalogue.system_test import DURATION
from results.criteria.measures import MoveMeasures

READ = ("metric", "value")
"""The columns of the samples that a summary needs."""


def summarise(samples: pa.Table) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return (metrics, rows of each, a row for each of mean, max, p50, p99) of a run's samples.

    A quantile q of n values is the one at ⌈q n⌉ of them in order: a value that was seen.
    """
    metric = samples.column("metric").combine_chunks()
    encoded = metric if isinstance(metric, pa.DictionaryArray) else metric.dictionary_encode()
    codes = np.asarray(encoded.indices)
    values = samples.column("value").to_numpy()
    # Codes of 16 bits are put in order by their digits, and each metric's values by themselves: a third of what one
    # sort of both takes.
    order = np.argsort(codes.astype(np.uint16) if len(encoded.dictionary) <= 1 << 16 else codes, kind="stable")
    sorted_codes, ordered = codes[order], values[order]
    starts = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
    counts = np.diff(np.append(starts, len(ordered)))
    for begin, count in zip(starts, counts, strict=True):
        ordered[begin : begin + count].sort()
    names: list[str] = encoded.dictionary.take(pa.array(sorted_codes[starts])).to_pylist() if len(starts) else []
    if not names:
        return [], counts.astype(np.int64), np.empty((0, 4))
    at: dict[float, Any] = {q: starts + np.maximum(np.ceil(q * counts).astype(np.int64), 1) - 1 for q in (0.5, 0.99)}
    columns = (
        np.add.reduceat(ordered, starts) / counts,
        ordered[starts + counts - 1],
        ordered[at[0.5]],
        ordered[at[0.99]],
    )
    return names, counts.astype(np.int64), np.column_stack(columns)


Better = Literal["lower", "higher", "unknown", "canary"]
"""Which way is better; a canary says something of the machine, and nothing of Kafka."""

VALUES = pa.schema(
    [
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("scenario", pa.string(), nullable=False),
        pa.field("series", pa.string(), nullable=False),
        pa.field("experiment", pa.string(), nullable=False),
        pa.field("parameters", pa.string(), nullable=False),
        pa.field("environment", pa.string(), nullable=False),
        pa.field("environment_details", pa.string(), nullable=False),
        pa.field("kafka", pa.string(), nullable=False),
        pa.field("commit", pa.string()),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("unit", pa.string(), nullable=False),
        pa.field("better", pa.string(), nullable=False),
        pa.field("value", pa.float64()),
        pa.field("noisy", pa.bool_()),
        pa.field("defects", pa.string()),
        pa.field("failed", pa.string()),
        pa.field("logged", pa.string()),
        pa.field("tested", pa.string()),
    ]
)
"""`scenario`, `series` and `environment` are short names; `parameters` and `environment_details` are their JSON.

`value` is null where the run has none, and in an inconclusive run. If only the machine made the run inconclusive, the
row has its value, and `noisy` is true: a judgement uses such values on request only (null in parts of earlier
versions). `defects` names the defects of brokers that are broken on purpose (else null): such a run is in no history.
`failed` names the failed criteria, in the row of `failed-criteria` alone; so does `logged` the kinds of log lines that
nothing explains, as JSON (null where the logs were not read whole, and in parts of earlier versions). `tested` is a
short name of what was tested, see `tested_of` (null in parts of earlier versions)."""

FAILED = "failed-criteria"
"""The metric that every run has: how many of its criteria failed."""


@dataclass(frozen=True, slots=True)
class Value:
    """One metric of one run; None where it could not be measured."""

    metric: str
    unit: str
    better: Better
    value: float | None


def environment_of(run: Manifest) -> dict[str, Any]:
    """Return what a class of environment is: CPU, cores, kernel, engine, image, NICs as declared and as measured."""
    ratios = [nic.ratio for nic in run.nics]
    if not ratios or None in ratios:
        network = "not measured"
    else:
        on = all(ratio is not None and NIC_LOWEST <= ratio <= NIC_HIGHEST for ratio in ratios)
        network = "as declared" if on else "off its rate"
    return {
        "cpu": run.machine.cpu_model,
        "cores": run.machine.cores,
        "kernel": run.machine.kernel,
        "engine": run.machine.engine,
        "storage_driver": run.machine.storage_driver,
        "image": run.versions.image_digest or "",
        "nics_bps": sorted({nic.declared_bps for nic in run.nics}),
        "network": network,
    }


def environment_id(run: Manifest) -> str:
    """Return the short name of a run's class of environment."""
    return short(_environment_details(run))


def _environment_details(run: Manifest) -> str:
    return json.dumps(environment_of(run), sort_keys=True, ensure_ascii=False)


def parameters_of(run: Manifest) -> dict[str, Any]:
    """Return what makes two runs of an experiment the same scenario."""
    variant = {} if run.incident is None else {"variant": run.incident.variant}
    return {**run.parameters, **variant, "topology": run.topology.name}


def tested_of(run: Manifest) -> str | None:
    """Return a short name of what is tested: Kafka's jars, image and topology with its settings, and defects.

    The testbed is no part of it: it measures. Return None where the jars are not known.
    """
    used = run.versions
    if used.jars_digest is None:
        return None
    return short(used.jars_digest, used.image_digest or "", run.topology.digest, *in_words(run.defects))


def scenario_id(experiment: str, parameters: Mapping[str, Any]) -> str:
    """Return the short name of a scenario."""
    return short(experiment, json.dumps(dict(parameters), sort_keys=True, ensure_ascii=False))


def move_values(run: Manifest, measured: MoveMeasures) -> Iterator[Value]:
    """Yield the numbers of a run that moved something; compared ones by their standing (`results/compare`)."""
    for measure in compared_measures():
        if measure.compared and measure.followed:
            value = measure.value(run, measured)
            yield Value(measure.name, measure.unit, measure.better, None if value is None else measure.standing(value))
    for view in measured.clients:
        if view.part == "during" and view.records:
            yield Value(f"{view.kind}-silence", "s", "lower", view.silence_s)


def summary_values(names: list[str], summary: np.ndarray[Any, np.dtype[np.float64]]) -> Iterator[Value]:
    """Yield the numbers of a run whose experiment has no rules: mean and p99 of each of its metrics. No rule says which
    way is better.

    `summary` has a row for each name: mean, max, p50, p99.
    """
    for name, row in zip(names, summary.tolist(), strict=True):
        yield Value(f"{name} mean", "", "unknown", row[0])
        yield Value(f"{name} p99", "", "unknown", row[3])


def duration_values(samples: pa.Table) -> Iterator[Value]:
    """Yield the durations of a run that is one test of Apache's, or one command, when it ended well."""
    names, _, numbers = summarise(samples)
    for name in (DURATION, SECONDS, CPU_SECONDS):
        if name in names:
            yield Value(name, "s", "lower", float(numbers[names.index(name)][0]))


SUMMED = " (mean|p99)$"
"""How the metrics of `summary_values` end; no other does, and they have no unit."""


def canary_values(run: Manifest, read: Mapping[str, float]) -> Iterator[Value]:
    """Yield what the machine showed: its NICs and stolen time in the run, and canaries that were read with it."""
    ratios = [nic.ratio for nic in run.nics if nic.ratio is not None]
    if ratios and "nic" not in read:
        yield Value("canary.nic", "of the declared rate", "canary", min(ratios))
    yield Value("canary.steal", "of all cores", "canary", run.load.steal_max)
    for name, value in sorted(read.items()):
        yield Value(f"canary.{name}", "", "canary", value)


def rows(
    run: Manifest, failed: Sequence[str], values: list[Value], *, noisy: bool = False, sound: bool = False
) -> list[dict[str, Any]]:
    """Return the rows of a run, of schema VALUES; `failed` has the name of each criterion that failed, for each host.

    With `noisy` only other work on the machine kept it from a verdict, with `sound` only what would explain it.
    """
    parameters = json.dumps(parameters_of(run), sort_keys=True, ensure_ascii=False)
    scenario, environment = short(run.experiment, parameters), environment_id(run)
    unknown = run.verdict == "inconclusive" and not (noisy or sound)
    head = {
        "run_id": run.run_id,
        "at": datetime.fromisoformat(run.started),
        "scenario": scenario,
        "experiment": run.experiment,
        "parameters": parameters,
        "environment": environment,
        "environment_details": _environment_details(run),
        "kafka": ", ".join(sorted(set(run.versions.kafka.values()))),
        "commit": run.versions.commit,
        "verdict": run.verdict,
        "defects": "; ".join(in_words(run.defects)) or None,
        "tested": tested_of(run),
    }
    kinds = line_kinds(run.facts.logs)
    logged = None if kinds is None else json.dumps(kinds, ensure_ascii=False)
    every = [Value(FAILED, "criteria", "lower", float(len(failed))), *values]
    return [
        {
            **head,
            "series": series_id(scenario, environment, each.metric),
            "metric": each.metric,
            "unit": each.unit,
            "better": each.better,
            "value": None if unknown and each.better != "canary" else _finite(each.value),
            "noisy": noisy and each.better != "canary",
            "failed": ("; ".join(sorted(set(failed))) or None) if each.metric == FAILED else None,
            "logged": logged if each.metric == FAILED else None,
        }
        for each in every
    ]


def series_id(scenario: str, environment: str, metric: str) -> str:
    """Return the short name of a series. A measure that was renamed keeps its series."""
    return short(scenario, environment, first_measure_name(metric))


def short(*parts: str) -> str:
    """Return a name of twelve hexadecimal digits for what the parts say."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
