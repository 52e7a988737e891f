"""High- and low-volume partitions under one throttle (KAFKA-4313): replicas in sync keep their ISR.

Clients write to 100 high-volume partitions, which move (A) → (B), and to 20 low-volume partitions with both brokers in
their ISR. The throttle lists all of them, with `*`. One response exceeds what the quota allows in `lag`
(`replica.lag.time.max.ms`). Fetches therefore omit listed partitions out of sync for longer than a follower may lag.
Before KAFKA-4313 fetches also omitted partitions in sync, and their ISR shrank and expanded all the time.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from results.criteria.phase_directions import WAIT_S
from testbed.errors import UsageError
from testbed.experiments.criteria import PROTECTED, RATES
from testbed.experiments.experiment import Hosts, Parameter, Settings, SuiteScenario, Value, above_zero, number
from testbed.experiments.kip73_layouts import lasting, moved, side, throttled_layout
from testbed.experiments.layout import Layout, PartitionGroup
from testbed.experiments.throttled_move import (
    COMPARE,
    MODES,
    load,
    parameters,
    response,
    response_properties,
    throttled_experiment,
)
from testbed.throttle.quota_window import BURST_BYTES_PER_S
from testbed.units import format_duration, format_size, parse_byte_rate, parse_duration

LOW_PARTITIONS, LOW_BYTES = 20, 4_000_000


def _lag(text: str) -> Value:
    seconds = parse_duration(text)
    if seconds < WAIT_S:
        raise ValueError("expected 500ms or more: a broker does not start with less than replica.fetch.wait.max.ms")
    return seconds


def _layout(settings: Settings, hosts: Hosts) -> Layout:
    a, b = hosts
    left_out_s = number(settings, "response") / number(settings, "rate")
    if left_out_s <= number(settings, "lag"):
        raise UsageError(
            f"a response is worth {format_duration(round(left_out_s, 1))} of the throttle, not more than "
            f"lag={format_duration(number(settings, 'lag'))}: no ISR would shrink even if those in sync were held back"
            "; give a larger response, a smaller lag or a lower rate"
        )
    least_s = WAIT_S + number(settings, "response") / BURST_BYTES_PER_S
    if number(settings, "lag") < least_s:
        raise UsageError(
            f"lag={format_duration(number(settings, 'lag'))} is less than a fetch of a healthy follower may take with "
            f"response={format_size(int(number(settings, 'response')))}: give "
            f"{format_duration(math.ceil(least_s))} or more"
        )
    high = moved(settings, (a,), (b,), number(settings, "inbound"))
    low = PartitionGroup("low", range(LOW_PARTITIONS), (a, b), (a, b), LOW_BYTES, number(settings, "low"))
    # One partition, larger than a response: smaller partitions would not show that the control is not limited.
    control = side("control", a, b, round(1.5 * number(settings, "response")), 1)
    return lasting(settings, replace(throttled_layout([high, low], a, b, wildcard=True), control=control))


def _properties(settings: Settings) -> Mapping[str, str]:
    return {**response_properties(settings), "replica.lag.time.max.ms": str(round(1000 * number(settings, "lag")))}


EXPERIMENT = throttled_experiment(
    "kip73-mixed-volume",
    "high- and low-volume partitions under one throttle: replicas in sync keep their ISR (KAFKA-4313)",
    brokers=2,
    parameters=parameters(
        *load("1MB/s"),
        COMPARE,
        Parameter("low", "200kB/s", above_zero(parse_byte_rate), "what is written to the low-volume partitions"),
        response("20MiB"),
        Parameter("lag", "3s", _lag, "replica.lag.time.max.ms"),
        rate="4MB/s",
        fetch="default",
    ),
    layout=_layout,
    properties=_properties,
    profiles={"release": {"preload": "120s"}},
    criteria=(*RATES, "no-isr-shrink", *PROTECTED),
    suites=(
        SuiteScenario("kip73", ("ci",), "mixed-volume", 10),
        *SuiteScenario("kip73", ("release",), "mixed-volume", 9).over("fetch", "tuned", "default"),
        *SuiteScenario("kip435", ("release",), "mixed-volume", 8).over("mode", *MODES),
    ),
)
