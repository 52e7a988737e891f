"""The return of a measured move: the same partitions move back at once, without a throttle, under the same load.

It follows the measured move, so that it cannot change what that measures. The clients' latencies during both are
compared (`clients-protected`).
"""

from collections.abc import Mapping
from typing import Any

from results.contract.schema import Sample
from testbed.experiments.move_driver import UNTHROTTLED_LOOK_S
from testbed.experiments.move_environment import MoveEnvironment
from testbed.experiments.samplers import DRIVER
from testbed.kafka.capabilities import of_software
from testbed.kafka.errors import KafkaError
from testbed.reassignment.driver import Driver, DriverError
from testbed.reassignment.plan import Plan
from testbed.reassignment.progress import Poll
from testbed.throttle.journal import JournalFolder
from testbed.throttle.recovery import RestoreError
from testbed.wait import WaitTimeout

EVENTS = {"move.started": "return.started", "move.done": "return.done"}
"""The driver's event → the return's: the events of the measured move stay the only ones of their kinds."""
RETURN_S = 90.0
"""The longest wait for the end. What a throttle lets pass in a minute takes a tenth of that without one."""


def return_plan(environment: MoveEnvironment) -> Plan:
    """Return the plan that gives every throttled partition that has moved its replicas of before the move."""
    groups, ids = environment.throttled_groups(), environment.ids
    return Plan({tp: tuple(ids[host] for host in group.current) for group in groups for tp in group.tps()})


def move_back(environment: MoveEnvironment) -> None:
    """Move the throttled partitions back, and wait until they have arrived. A failure is an event, not an exception."""
    recorder, able = environment.recorder, of_software(environment.testbed.topology)

    def told(kind: str, name: str, detail: Mapping[str, Any]) -> None:
        recorder.event(EVENTS.get(kind, kind), name, detail)

    def on_poll(poll: Poll) -> None:
        recorder.add([Sample(poll.ts_us, DRIVER, "return.in_flight", float(poll.in_flight))])

    environment.context.progress("moving the partitions back without a throttle, to compare")
    try:
        with Driver(environment.admin, JournalFolder(), on_event=told, cancel_on_error=True, able=able) as driver:
            driver.execute(return_plan(environment), None)
            driver.follow(on_poll, timeout_s=RETURN_S, interval_s=UNTHROTTLED_LOOK_S)
    except (DriverError, KafkaError, RestoreError, WaitTimeout) as error:
        # Only the comparison is lost: the measured move is over.
        recorder.event("note", "not moved back", {"error": str(error)})
