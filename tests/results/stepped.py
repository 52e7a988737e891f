"""A run of steps in memory: KIP-455's example as KRaft has it, and what can be wrong with it."""

from dataclasses import replace

from results.contract.logs import HostLog
from results.contract.manifest import Facts, new_run_id
from results.contract.schema import Event, Sample, events_table, samples_table
from results.contract.steps import Expectation, RequiredState, StepRecord, StepsRecord
from tests.results.synthetic import EPOCH, plain_run, us

TOPIC = "kip455"
ORIGINAL = {"replicas": [1, 2, 3], "adding": [], "removing": [], "isr": [1, 2, 3], "leader": 1, "leader_epoch": 0}
MOVING = {**ORIGINAL, "replicas": [4, 3, 2, 1], "adding": [4], "removing": [1]}
DONE = {"replicas": [4, 3, 2], "adding": [], "removing": [], "isr": [3, 2, 4], "leader": 4, "leader_epoch": 1}
BEFORE = Expectation("before", "before", TOPIC, 0, RequiredState(replicas=(3, 2, 1), adding=()))
UNDER_WAY = RequiredState(
    replicas=(1, 2, 3, 4), adding=(4,), removing=(1,), isr=(1, 2, 3), out_of_sync=(4,), leaders=(1, 9)
)
EXPECTED = (
    Expectation("moving", "seen", TOPIC, 0, UNDER_WAY),
    Expectation(
        "both", "never", TOPIC, 0, RequiredState(adding=(4,), in_sync=(4,)), "R: [1, 4, 3, 2], I: [1, 2, 3, 4]"
    ),
    Expectation("done", "end", TOPIC, 0, RequiredState(order=(4, 3, 2), isr=(2, 3, 4), leaders=(4,))),
)


def log(seconds, offset, state, partition=0):
    where = {"topic": TOPIC, "partition": partition, "offset": offset}
    return Event(us(seconds), "trace.log", f"{TOPIC}-{partition}", None, {**where, **state})


def told(seconds, kind, state, partition=0):
    kept = ("replicas", "isr", "leader", "leader_epoch") if kind == "trace.described" else ("adding", "removing")
    kept += ("replicas",) if kind == "trace.listed" and state.get("adding") else ()
    detail = {"gone": True} if state.get("gone") else {name: state[name] for name in kept}
    return Event(us(seconds), kind, f"{TOPIC}-{partition}", None, {"topic": TOPIC, "partition": partition, **detail})


LOGS = (HostLog("b1"),)
LOGGED = (log(-5, 10, ORIGINAL), log(1.002, 20, MOVING), log(4.5, 30, DONE))
POLLED = tuple(
    told(seconds, kind, state)
    for seconds, state in ((0.5, ORIGINAL), (1.3, MOVING), (4.7, DONE))
    for kind in ("trace.described", "trace.listed")
)
STEP = StepRecord("asked", "partition 0: to [4, 3, 2]", us(1.0015), us(5), "accepted", "accepted", (BEFORE, *EXPECTED))


def stepped(events=(*LOGGED, *POLLED), steps=(STEP,), token="steps0", equal=True, problem="", logs=LOGS):
    """Manifest, samples and events."""
    manifest = replace(
        plain_run().manifest,
        run_id=new_run_id("kip455-example", EPOCH, token),
        experiment="kip455-example",
        move=None,
        nics=(),
        facts=Facts(logs=logs),
        steps=StepsRecord((TOPIC,), tuple(steps), equal, () if equal else ("kip455-0: ISR",), problem),
    )
    return manifest, samples_table([Sample(us(0), "machine", "cpu.busy", 0.1)]), events_table(events)


VARIANTS = {
    "whole0": {},
    "never0": {"events": (*LOGGED[:2], log(3, 25, {**MOVING, "isr": [1, 2, 3, 4]}), LOGGED[2], *POLLED)},
    "later0": {"events": (LOGGED[0], log(0.9, 15, DONE), *POLLED)},
    "nolog0": {"events": POLLED, "equal": None, "problem": "the log could not be read"},
    "stuck0": {"events": (*LOGGED[:2], *POLLED)},
    "untold": {"events": LOGGED, "equal": False},
    "gone00": {
        "events": (*LOGGED[:2], log(2, 21, {"gone": True}), told(2.2, "trace.described", {"gone": True})),
        "steps": (
            replace(STEP, expectations=(Expectation("gone", "end", TOPIC, 0, RequiredState(gone=True)), *EXPECTED)),
            replace(STEP, name="other", expectations=(Expectation("there", "end", TOPIC, 1, RequiredState()),)),
        ),
    },
    "early0": {"events": (*LOGGED, told(0.2, "trace.listed", MOVING), *POLLED)},
    "nolead": {
        "events": (*LOGGED[:2], log(2, 21, {**MOVING, "leader": None, "isr": []}), LOGGED[2], *POLLED),
        "steps": (
            STEP,
            replace(STEP, name="not-taken", from_us=None, to_us=None, answer="", why="asked did not come to its end"),
            replace(STEP, name="refused", answer="INVALID_REPLICA_ASSIGNMENT for 0", from_us=us(4.6)),
        ),
    },
}
