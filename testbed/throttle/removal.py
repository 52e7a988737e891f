"""The removal of every throttle that a cluster has, also of those of other tools."""

from testbed.errors import TestbedError
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError
from testbed.throttle.configs import wait_for_configs
from testbed.throttle.status import ThrottleStatus
from testbed.wait import WaitTimeout


class ClearError(TestbedError):
    """Some keys could not be deleted; one line each."""


def clear(admin: Admin, state: ThrottleStatus) -> None:
    """Delete every key of a throttle that `read_status` found, and no other; return once no broker reports one.

    A failure on one resource does not stop the others. Raise `ClearError` for the failures, and for each broker without
    an answer: it may have a separate rate, which only that broker reports and deletes.
    """
    problems = [
        f"broker {broker.id} could not be asked whether it has a throttle: {broker.why}; clear again once it answers"
        for broker in state.brokers
        if broker.why is not None
    ]
    for resource, keys in state.set_now().items():
        try:
            admin.alter_configs(resource, {}, list(keys))
            wait_for_configs(admin, resource, dict.fromkeys(keys), f"the throttle of {resource} to be gone")
        except (KafkaError, WaitTimeout) as error:
            problems.append(str(error))
    if problems:
        raise ClearError("not everything was cleared, or is known to be:\n  " + "\n  ".join(problems))
