"""A throttle whose process is killed between two requests, and what `recover` makes of it."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from fakes.admin import FakeAdmin

from testbed.throttle.journal import JournalFolder, open_journals
from testbed.throttle.recovery import Recovery, recover

REQUESTS = 2
"""The changes of configurations that one change of the throttle requests here."""


class Killed(BaseException):
    """As if by SIGKILL: nothing is cleaned up."""


def recovered_after_kill(
    admin: FakeAdmin, journals: JournalFolder, survived: int, change: Callable[[], None]
) -> Recovery:
    """Kill a change after `survived` of its requests, or leave it whole, and return what `recover` then did."""
    left = iter(range(survived))

    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "alter_configs" and next(left, None) is None:
            raise Killed

    admin.hook = hook
    if survived < REQUESTS:
        with pytest.raises(Killed):
            change()
    else:
        change()
    admin.hook = lambda _call, _args: None
    [journal] = open_journals(journals)
    journals.write(replace(journal, owner=replace(journal.owner, started_ticks=journal.owner.started_ticks - 1)))
    [found] = recover(lambda _bootstrap: admin, journals, timeout_s=0)
    return found
