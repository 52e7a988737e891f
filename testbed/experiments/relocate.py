"""A move that no quota holds back, under load: made ready, measured, carried out, read back; what is judged of it."""

import threading
import time
from collections.abc import Callable
from typing import Self

from results.contract.handover import HandoverSeen
from results.contract.live import LiveLoad
from results.contract.manifest import Differences, Done, Facts, InForce, NicMeasurement
from results.contract.relocation import ColdRead, Relocation, Sent
from testbed.experiments.experiment import Context, Outcome
from testbed.experiments.load import ALONE_S
from testbed.experiments.mover import Mover, MoveSetup, Transferred
from testbed.experiments.scene import plan
from testbed.experiments.storage import check_storage, hosts_of, log_bytes_of
from testbed.kafka.admin import Admin
from testbed.kafka.capabilities import of_software
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import TopicPartition
from testbed.probes.logwatch import LogWatch
from testbed.reassignment.driver import Driver, DriverError
from testbed.throttle.journal import JournalFolder
from testbed.throttle.recovery import RestoreError
from testbed.wait import WaitTimeout

LOOK_S = 0.1
"""A move in S3 takes seconds: it is looked at more often than one that takes minutes."""
FULL_FRAMES = 1514 / 1448
"""What a NIC counts for a byte of payload at least; for software whose replicas copy nothing to calibrate by."""
Sizes = dict[TopicPartition, int]


class Relocator(Mover):
    """The same steps as of a throttled move, without the throttle, and with an object store beside the brokers."""

    balanced = False
    """Whether every broker is to have its share of partitions afterwards."""
    after_s = ALONE_S
    """How long the load runs by itself when the move is over."""

    def __enter__(self) -> Self:
        return self

    def calibrate(self) -> float | None:
        """See `Mover.calibrate`."""
        if self.setup.storage == "automq":
            self.recorder.event("calibration.done", "nothing is copied between brokers")
            return FULL_FRAMES
        return super().calibrate()

    def alone(self, name: str, seconds: float = ALONE_S) -> None:
        """Mark an instant, and let everything run by itself: what it costs without a move is seen then."""
        self.load.mark(name)
        if self.load.idle:
            self.recorder.event(f"load.{name}", "load")
        threading.Event().wait(seconds)  # the load is what is measured: there is nothing to wait for but time

    def ready(self) -> None:
        """What is to be done when the load has begun, before it runs by itself."""

    def opening(self) -> None:
        """What is to be done last before the move."""

    def transfer(self, timeout_s: float) -> Transferred:
        """The move itself; what did not succeed is a fact, not an exception."""
        done, able = Done(False, "the move was not started"), of_software(self.testbed.topology)
        driver = Driver(self.admin, JournalFolder(), on_event=self.recorder.event, cancel_on_error=True, able=able)
        self.driver = driver
        try:
            with driver:
                driver.execute(plan(self.scene.moving, self.ids), None)
                self.begun()
                timeline = driver.follow(self.on_poll, timeout_s=timeout_s, interval_s=LOOK_S)
                done = Done(True, f"seen {timeline.seconds:.1f} s after it was asked for")
        except (DriverError, KafkaError, RestoreError, WaitTimeout) as error:
            # What was seen so far is judged all the same; the verdict says what is missing.
            done = Done(False, str(error))
            self.recorder.event("note", "the move was not done", {"error": str(error)})
        return Transferred(done, InForce(True, 0.0), Differences(True))

    def moved(self) -> None:
        """What is to be done when the move is over, and before the load runs by itself."""

    def cold(self) -> ColdRead | None:
        """What a consumer from the beginning read; None when there was none."""
        return None

    def handover(self) -> HandoverSeen | None:
        """The steps of the handover, on storage that brokers share; None where nobody looked."""
        return None

    def sent(self, sizes: Sizes) -> tuple[Sent, ...]:
        """Who has to send what to whom, with the leaders' logs as they were when the move began."""
        calibration = self.scene.calibration
        logs = [
            self.recorder.latest(calibration.leader, "log.bytes", tp.topic, tp.partition) for tp in calibration.tps()
        ]
        like = sum(log for log in logs if log is not None) if None not in logs else None
        found = []
        for group in self.scene.listed:
            local: int | None = sum(sizes.get(tp, 0) for tp in group.tps())
            if self.setup.storage == "automq":
                local = 0  # there is no log on any disk
            elif any(tp not in sizes for tp in group.tps()):
                local = None
            total = log_bytes_of(group.bytes, calibration.bytes, like)
            if self.setup.storage == "disk" and local is not None:
                total = local
            found += [Sent(group.leader, each, len(group.partitions), total, local) for each in group.adding]
        return tuple(found)


MakeRelocator = Callable[[Context, MoveSetup, Admin], Relocator]


def run_relocation(context: Context, setup: MoveSetup, make: MakeRelocator = Relocator) -> Outcome:
    """Prepare, measure, move, read back; what did not succeed is a fact, not an exception."""
    recorder, topology = context.recorder, context.testbed.topology
    check_storage(setup.storage, topology)
    with context.testbed.admin() as admin, make(context, setup, admin) as mover:
        watch = LogWatch(context.testbed, mover.allowances())
        watch.start()
        with recorder.step("prepare"):
            leaders = mover.prepare()
        mover.watch()
        with recorder.step("measure NICs"):
            nics = mover.nics()
        with recorder.step("calibrate"):
            factor = mover.calibrate()
        recorder.wait_for_all()  # the calibration's log, as it lies where it was sent from
        with mover.load:
            mover.ready()
            mover.load.warm()
            mover.alone("before")
            sizes = mover.sizes()
            sent = mover.sent(sizes)
            context.progress(f"moving {sum(each.partitions for each in sent)} partitions, {_told(sent)}")
            mover.opening()
            begun = time.monotonic()
            with recorder.step("move"):
                moved = mover.transfer(_timeout_s(sent, nics))
            context.progress(f"moved in {time.monotonic() - begun:.1f} s")
            mover.moved()
            mover.alone("after", mover.after_s)
            cold = mover.cold()
        # Twice: one host's last sample must lie after the others' samples that show the end.
        recorder.wait_for_all()
        recorder.wait_for_all()
        recorder.stop()
        records, live = mover.audit()
        logs = watch.logs()
    return Outcome(
        nics=nics,
        facts=Facts(records=records, leaders=leaders, done=moved.done, logs=logs, live=live, handover=mover.handover()),
        relocation=Relocation(
            storage=setup.storage,
            brokers=tuple(mover.ids),
            stores=tuple(hosts_of(topology)),
            sent=sent,
            nic_bytes_per_log_byte=factor,
            written_bytes_per_s=_written(mover, live),
            balanced=mover.balanced,
            cold=cold,
        ),
    )


def _written(mover: Relocator, live: LiveLoad | None) -> float:
    return sum(group.inbound_bytes_per_s for group in mover.scene.listed) if live is not None else 0.0


def _told(sent: tuple[Sent, ...]) -> str:
    total = sum(each.total_bytes for each in sent)
    local = sum(each.local_bytes or 0 for each in sent)
    return f"{total / 1e6:.0f} MB, of which {local / 1e6:.0f} MB on disks"


def _timeout_s(sent: tuple[Sent, ...], nics: tuple[NicMeasurement, ...]) -> float:
    """Five times what the whole logs take over the slowest NIC, and a minute and a half."""
    rates = [nic.payload_bytes_per_s for nic in nics if nic.payload_bytes_per_s]
    return 90.0 + 5 * sum(each.total_bytes for each in sent) / min(rates, default=10e6)
