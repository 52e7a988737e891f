"""Replays as they lie in a store, made by hand."""

from dataclasses import replace

from results.contract.logs import HostLog
from results.contract.manifest import Facts, NicMeasurement
from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria.replayed_run import ReplayedRun
from testbed.incidents.replay import record_of
from tests.incidents.files import small
from tests.results.synthetic import synthetic_run

S = 1_000_000
T0 = 1_700_000_000 * S
BROKERS = ("b1", "b2", "b3")
CLEAN = tuple(HostLog(host) for host in BROKERS)


def at(seconds):
    return T0 + round(seconds * S)


def event(seconds, kind, name="", **detail):
    return Event(at(seconds), kind, name, None, detail)


def machine(busy=0.4, until=62):
    """The machine's CPU, once a second until an instant."""
    seen = (("cpu.busy", busy), ("cpu.steal", 0.0))
    return [Sample(at(second), "machine", metric, value) for second in range(-2, until) for metric, value in seen]


def nics(ratio=0.99, bps=400_000_000):
    return tuple(
        NicMeasurement(host, "data0", direction, bps, 47e6, ratio, 2.0)
        for host in BROKERS
        for direction in ("transmit", "receive")
    )


def manifest(incident=None, *, records=None, logs=None, measured=(), uplinks=None):
    record = replace(record_of(incident or small().broken, 7), uplinks_bps=uplinks or {})
    return replace(
        synthetic_run().manifest,
        run_id="20261121T181500Z-incident-small-ab12cd",
        experiment="incident-small",
        move=None,
        incident=record,
        facts=Facts(records=records, logs=logs),
        nics=measured,
    )


def tables(samples=(), events=(), *, started=T0, ended=None):
    ended = at(30.0) if ended is None else ended
    own = [Event(started, "incident.started", "small"), Event(ended, "incident.ended", "small")]
    return samples_table(list(samples)), events_table([*own, *events])


def replayed(samples=(), events=(), *, ends=30.0, started=T0, **facts):
    last = max([at(ends), *(event.ts_us for event in events)]) if started == 0 else at(ends)
    return ReplayedRun(manifest(**facts), *tables(samples, events, started=started, ended=last))
