"""One watched move on shared storage, from the probe's start to the steps of every partition."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from results.contract.handover import HandoverSeen
from testbed.handover.probe import Probe
from testbed.handover.watch import HandoverWatch, moved
from testbed.kafka.capabilities import of_software
from testbed.probes.recorder import now_us
from testbed.provision.testbed import Testbed
from testbed.reassignment.driver import Driver, DriverError
from testbed.reassignment.plan import Plan
from testbed.reassignment.progress import MoveProgress
from testbed.throttle.journal import JournalFolder
from testbed.wait import WaitTimeout, wait_for
from testbed.workload.written import Written

SETTLED_S = 30.0
LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Watched:
    """What a move came to. `timeline` is None, and `why` says it, for one that was not done in time.

    `written` are the probe's own records, for the audit.
    """

    seen: HandoverSeen
    written: tuple[Written, ...]
    timeline: MoveProgress | None
    why: str = ""


def watched_move(
    testbed: Testbed,
    plan: Plan,
    seed: int,
    *,
    timeout_s: float,
    accepted: Callable[[], int | None] = lambda: None,
) -> Watched:
    """Carry out a plan of single replicas, and tell the steps of each.

    `accepted` is called as soon as the controller has accepted the plan; it returns when it killed the old broker, or
    None when it did not. Raises what `Driver` raises of a plan that was refused.
    """
    with ExitStack() as stack:
        admin = stack.enter_context(testbed.admin())
        hosts = {host.node_id: host.name for host in testbed.topology.brokers if host.node_id is not None}
        watch = HandoverWatch(testbed)
        watch.start()
        probe = Probe(testbed.bootstrap, list(plan.targets), seed)
        probe.start()
        stack.callback(probe.stop)
        asked = []

        def told(kind: str, _name: str, _detail: Mapping[str, Any]) -> None:
            if kind == "move.started":  # the request is sent next
                asked.append(now_us())

        able = of_software(testbed.topology)
        driver = stack.enter_context(Driver(admin, JournalFolder(), on_event=told, able=able))
        moves = driver.execute(plan, None)
        killed_us = accepted()
        timeline, why = None, ""
        try:
            timeline = driver.follow(timeout_s=timeout_s, interval_s=LOOK_S)
            done_us = now_us()
            wait_for(
                lambda: [tp for tp, each in probe.probed().items() if not each.acked or each.acked[-1][1] < done_us],
                lambda silent: not silent,
                SETTLED_S,
                LOOK_S,
                "an acknowledgement in every partition after the move",
            )
        except (DriverError, WaitTimeout) as error:
            # What was seen of it is told all the same.
            why = str(error)
        probe.stop()
        seen = watch.finish(moved(moves, hosts), asked[0], probe, killed_us=killed_us)
    return Watched(seen, probe.written(), timeline, why)
