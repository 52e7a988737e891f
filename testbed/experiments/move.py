"""One throttled move, with everything that is needed to judge it: the order of the steps, and what comes of them."""

import math
from collections.abc import Callable

from results.contract.manifest import Facts, Move
from testbed.experiments.accounts import inbound_rates, instant, predicted_seconds, quotas
from testbed.experiments.experiment import Context, Outcome
from testbed.experiments.mover import DEFAULT_RESPONSE_BYTES, Mover, MoveSetup
from testbed.experiments.scene import copies, expected, fetchers, kip73
from testbed.kafka.admin import Admin
from testbed.kafka.types import TopicPartition
from testbed.network.shape import payload_bytes_per_s
from testbed.probes.brokers import sampled_bps
from testbed.probes.logwatch import LogWatch
from testbed.throttle.duration import seconds, shares
from testbed.throttle.quota_window import BURST_BYTES_PER_S, SAMPLE_S, SAMPLES

MakeMover = Callable[[Context, MoveSetup, Admin], Mover]
Sizes = dict[TopicPartition, int]


def run_move(context: Context, setup: MoveSetup, make: MakeMover = Mover) -> Outcome:
    """Prepare, measure, move, restore, read back; what did not succeed is a fact, not an exception."""
    recorder = context.recorder
    with context.testbed.admin() as admin, make(context, setup, admin) as mover:
        watch = LogWatch(context.testbed, mover.allowances())
        watch.start()
        with recorder.step("prepare"):
            leaders = mover.prepare()
        mover.watch()
        with setup.during.ground(mover):
            with recorder.step("measure NICs"):
                nics = mover.nics()
            with recorder.step("calibrate"):
                factor = mover.calibrate()
            with recorder.step("stage"):
                leaders = mover.stage() or leaders
            with mover.load:
                mover.load.warm()
                mover.load.alone("before")
                sizes = mover.sizes()
                _announce(mover, sizes)
                with recorder.step("move"):
                    moved = mover.transfer(_timeout_s(mover, sizes))
                mover.load.alone("after")
            # Twice: one host's last sample must lie after the others' samples that show the end.
            recorder.wait_for_all()
            recorder.wait_for_all()
            recorder.stop()
        records, live = mover.audit()
        logs = watch.logs()
    missing = setup.during.missing()
    if missing and moved.done.ok:
        recorder.event("note", "not what the scenario is about", {"why": f"the move was over before: {missing}"})
    facts = Facts(
        records=records,
        restored=moved.restored,
        leaders=leaders,
        # A move that was over before all had happened is no finding: nothing is established then.
        done=None if missing and moved.done.ok else moved.done,
        in_force=moved.in_force,
        logs=logs,
        live=live,
        batching=moved.batching,
    )
    return Outcome(nics, _move(mover, sizes, factor), facts)


def _announce(mover: Mover, sizes: Sizes) -> None:
    quota = mover.setup.quota_bytes_per_s
    total = sum(sizes.get(tp, 0) * len(group.adding) for group in mover.scene.listed for tp in group.tps())
    due_s = seconds(shares(copies(mover.scene, mover.ids, sizes), wildcard=mover.scene.wildcard), quota)
    about = f"about {due_s:.0f} s" if math.isfinite(due_s) else "which never ends: more comes in than that"
    mover.context.progress(f"moving {total / 1e6:.0f} MB at {quota / 1e6:g} MB/s, {about}")


def _timeout_s(mover: Mover, sizes: Sizes) -> float:
    """Three times what the move takes at the slowest quota that it will be given, a minute, and its rests."""
    quota = mover.during.slowest_bytes_per_s or mover.setup.quota_bytes_per_s
    return (
        3 * seconds(shares(copies(mover.scene, mover.ids, sizes), wildcard=mover.scene.wildcard), quota)
        + 60
        + mover.idle_s
    )


def _move(mover: Mover, sizes: Sizes, factor: float | None) -> Move:
    """The move as it was asked for, and what the model and KIP-73 say of it."""
    scene, setup, events = mover.scene, mover.setup, mover.recorder.events()
    leaders = {tp: group.leader for group in scene.listed for tp in group.tps()}
    inbound: dict[TopicPartition, float] = {}
    begun, ended = instant(events, "load.before"), instant(events, "move.done")
    if begun is not None and ended is not None:
        inbound = inbound_rates(mover.recorder.samples(), leaders, begun, ended)
    carried = mover.carried(sizes, inbound)
    held = quotas(events, setup.quota_bytes_per_s)
    slowest_bps = min(rate for host in mover.testbed.topology.brokers for rate in sampled_bps(host))
    line = min(float(BURST_BYTES_PER_S), payload_bytes_per_s(slowest_bps))
    model_s, why = predicted_seconds(scene, mover.ids, carried, held, line), mover.no_model
    if not math.isfinite(model_s):
        why = why or f"under {held[-1][1] / 1e6:g} MB/s it never ends: more comes in than that"
    estimates = [kip73(scene, quota, sizes, inbound) for _seconds, quota in held]
    estimate = next((each for each in estimates if math.isfinite(each.seconds)), estimates[-1])
    return Move(
        quota_bytes_per_s=setup.quota_bytes_per_s,
        fetch=setup.fetch,
        response_max_bytes=mover.broker_property("replica.fetch.response.max.bytes", DEFAULT_RESPONSE_BYTES),
        nic_bytes_per_log_byte=factor,
        fetchers=fetchers(scene, mover.broker_property("num.replica.fetchers", 1)),
        brokers=tuple(mover.ids),
        flows=mover.flows(),
        total_log_bytes=estimate.total_log_bytes,
        move_ratio=estimate.move_ratio,
        # Of the first quota above the inbound rate; 0 stands for none.
        kip73_seconds=estimate.seconds if math.isfinite(estimate.seconds) else 0.0,
        window_samples=SAMPLES,
        sample_s=SAMPLE_S,
        expected=expected(carried, mover.ids),
        model_seconds=None if why else model_s,
        model_why=why,
        inbound_bytes_per_s=estimate.max_bytes_in_per_s,
        nic_bound=setup.nic_bound,
        wildcard=scene.wildcard,
        min_insync=scene.min_insync,
        batches_s=() if why else mover.batches_s(sizes, held),
    )
