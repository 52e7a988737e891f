"""What became of a testbed whose containers do not run any more, in words.

The engine ends all containers when it is stopped, unless it was told to keep them (live-restore); so does the machine.
A testbed does not survive that: its network is made in the namespaces of its containers, and goes with them.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from testbed.errors import TestbedError
from testbed.owner import Owner
from testbed.provision.containers import Ended, Engine
from testbed.provision.state import TestbedState

AT_ONCE = timedelta(seconds=60)
"""The engine gives each container some seconds to end by itself."""
FABRIC = "the fabric"


class NotWhole(TestbedError):
    """Containers of a testbed have ended, or are gone."""

    def __init__(self, state: TestbedState, why: str, *, remedy: str = "", seen_as: str = "") -> None:
        name = state.name
        usual = f"`testbed down {name}` removes what is left, and `testbed up` makes it anew, with nothing that it held"
        if state.ephemeral:
            usual = "it was made for this alone, and is removed"
        seen = f"; seen as: {seen_as}" if seen_as else ""
        super().__init__(f"testbed {name} is not whole: {why}; {remedy or usual}{seen}")


def why_not_whole(engine: Engine, state: TestbedState) -> str:
    """Which containers of a testbed that was up do not run, since when and why; empty when all run."""
    found = engine.containers(state.name)
    running = {each.host for each in found if each.running}
    missing = [host for host in ("", *_hosts(state)) if host not in running]
    if not missing:
        return ""
    ended = _ended(engine, state)
    return in_words(missing, ended, len(running) + len(ended), Owner.parse(state.owner))


def in_words(missing: Collection[str], ended: Sequence[Ended], ran: int, owner: Owner | None) -> str:
    """The same, of what was found: `ran` is how many containers have been started, `owner` knows the machine's boot."""
    gone = [host or FABRIC for host in missing if host not in {each.host for each in ended}]
    words = [f"{', '.join(gone)} {'has' if len(gone) == 1 else 'have'} no running container"] if gone else []
    times = [each.at for each in ended]
    if len(ended) == ran > 1 and max(times) - min(times) <= AT_ONCE:
        rebooted = owner is not None and not owner.of_this_boot()
        what = "the machine was restarted" if rebooted else "the container engine was stopped or restarted"
        words.append(f"all its containers ended by {max(times):%Y-%m-%d %H:%M:%S} UTC: {what}")
    else:
        words += [
            f"the container of {each.host or FABRIC} ended at {each.at:%Y-%m-%d %H:%M:%S} UTC "
            f"with exit code {each.exit_code}"
            for each in sorted(ended, key=lambda each: each.host)
        ]
    return "; ".join(words)


@contextmanager
def explained(engine: Engine, state: TestbedState, remedy: str = "") -> Iterator[None]:
    """Within the block an error that comes of containers that have ended says so: `NotWhole` is raised instead of it.

    While the engine is being restarted it is waited for. `remedy` is what the user is told to do.
    """
    try:
        yield
    except NotWhole:
        raise
    except TestbedError as error:
        engine.wait_answering()
        ended = _ended(engine, state)
        if not ended:
            raise
        running = sum(each.running for each in engine.containers(state.name))
        why = in_words([each.host for each in ended], ended, running + len(ended), Owner.parse(state.owner))
        raise NotWhole(state, why, remedy=remedy, seen_as=str(error)) from error


def _ended(engine: Engine, state: TestbedState) -> list[Ended]:
    found = (engine.ended(each.id, each.host) for each in engine.containers(state.name) if not each.running)
    return [each for each in found if each is not None]


def _hosts(state: TestbedState) -> list[str]:
    return [str(host) for host in state.topology["hosts"]]
