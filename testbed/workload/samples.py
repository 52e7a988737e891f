"""What a process of a load tells, as samples. Pure."""

from collections.abc import Mapping
from typing import Any

from results.contract.schema import Sample
from testbed.workload.spec import ProducerSpec, Spec

_PRODUCED = {
    "due": "client.produce.due",
    "sent": "client.produce.sent",
    "acked": "client.produce.acked",
    "failed": "client.produce.failed",
    "in_doubt": "client.produce.in_doubt",
    "late_s": "client.late",
    "cpu": "client.cpu",
}
_CONSUMED = {"records": "client.consume.records", "lag": "client.consume.lag", "cpu": "client.cpu"}


def samples(spec: Spec, said: Mapping[str, Any]) -> list[Sample]:
    """The figures of one report. Counts of one second and bucket that come in several samples add up."""
    producing = isinstance(spec, ProducerSpec)
    metrics = _PRODUCED if producing else _CONSUMED
    found = [
        Sample(said["t"], spec.name, metric, float(said[key]))
        for key, metric in metrics.items()
        if "t" in said and said.get(key) is not None
    ]
    metric = "client.produce.latency" if producing else "client.consume.latency"
    for ts_us, buckets in said.get("latency", ()):
        found += [Sample(ts_us, spec.name, metric, float(count), label=str(bucket)) for bucket, count in buckets]
    return found
