"""Checks that the containers of a testbed still run, and a block that is left when they do not.

A stopping engine ends all containers unless it is configured with live-restore; so does a stopping machine. A testbed
does not survive this: its network is in the namespaces of its containers.
"""

import signal
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from types import FrameType
from typing import NoReturn

from testbed.errors import TestbedError
from testbed.network.apply import Place
from testbed.network.overlay import fabric_place
from testbed.network.overlay import in_words as place_in_words
from testbed.owner import Owner, is_dead
from testbed.provision.containers import ContainerExit, Engine
from testbed.provision.fleet import engine_of_state
from testbed.provision.inventory.remains import machines_not_whole
from testbed.provision.state import TestbedState

AT_ONCE = timedelta(seconds=60)
"""Seconds that the engine gives each container to end by itself."""


class NotWhole(TestbedError):
    """Containers of a testbed have ended or are missing."""

    def __init__(self, state: TestbedState, why: str, *, remedy: str = "", seen_as: str = "") -> None:
        name = state.name
        usual = f"`testbed down {name}` removes what is left, and `testbed up` makes it again, without its data"
        if state.ephemeral:
            usual = "it was made for this alone, and is removed"
        seen = f"; seen as: {seen_as}" if seen_as else ""
        super().__init__(f"testbed {name} is not whole: {why}; {remedy or usual}{seen}")


def why_not_whole(engine: Engine, state: TestbedState) -> str:
    """Return which containers of a provisioned testbed do not run, since when and why; empty when all run.

    Of machines that exist, return which do not answer or were restarted since.
    """
    if state.machines:
        return machines_not_whole(state)
    if state.machine_keys and set(state.machine_keys) - set(engine.members):
        with closing(engine_of_state(state)) as every:
            return why_not_whole(every, state)
    try:
        found = engine.containers(state.name)
    except TestbedError as error:
        if not state.machine_keys:
            raise
        return str(error)  # a machine that does not answer has no hosts for the testbed
    running = {each.host for each in found if each.running}
    fabrics = ("", *map(fabric_place, state.machine_keys))
    changing = {host for host, owner in state.changing.items() if not is_dead(owner)}
    declared = (*fabrics, *map(str, state.topology["hosts"]))
    missing = [host for host in declared if host not in running and host not in changing]
    if not missing:
        return ""
    ended = _ended_containers(engine, state)
    return in_words(missing, ended, len(running) + len(ended), Owner.parse(state.owner))


def in_words(missing: Collection[str], ended: Sequence[ContainerExit], ran: int, owner: Owner | None) -> str:
    """Return the text of `missing` and `ended`. `ran` counts started containers; `owner` has the machine's boot."""
    gone = [place_in_words(host) for host in missing if host not in {each.host for each in ended}]
    words = [f"{', '.join(gone)} {'has' if len(gone) == 1 else 'have'} no running container"] if gone else []
    times = [each.at for each in ended]
    if len(ended) == ran > 1 and max(times) - min(times) <= AT_ONCE:
        rebooted = owner is not None and not owner.of_this_boot()
        what = "the machine was restarted" if rebooted else "the container engine was stopped or restarted"
        words.append(f"all its containers ended by {max(times):%Y-%m-%d %H:%M:%S} UTC: {what}")
    else:
        words += [
            f"the container of {place_in_words(each.host)} ended at {each.at:%Y-%m-%d %H:%M:%S} UTC "
            f"with exit code {each.exit_code}"
            for each in sorted(ended, key=lambda each: each.host)
        ]
    return "; ".join(words)


def restarted(before: Mapping[str, Place], after: Mapping[str, Place]) -> str:
    """Return which containers of this machine have another first process than before, as text; empty when none has.

    A container that was restarted runs, without its data NICs and without its server.
    """
    found = [host for host, place in before.items() if isinstance(place, int) and after.get(host, place) != place]
    return "; ".join(f"the container of {place_in_words(host)} was restarted" for host in sorted(found))


@contextmanager
def explained(engine: Engine, state: TestbedState, remedy: str = "") -> Iterator[None]:
    """Convert an error in the block to `NotWhole` when containers have ended.

    Wait for an engine that is being restarted. `remedy` is the advice to the user in the error.
    """
    try:
        yield
    except NotWhole:
        raise
    except TestbedError as error:
        if state.machines:
            if why := machines_not_whole(state):
                raise NotWhole(state, why, remedy=remedy, seen_as=str(error)) from error
            raise
        engine.wait_answering()
        ended = _ended_containers(engine, state)
        if not ended:
            raise
        running = sum(each.running for each in engine.containers(state.name))
        why = in_words([each.host for each in ended], ended, running + len(ended), Owner.parse(state.owner))
        raise NotWhole(state, why, remedy=remedy, seen_as=str(error)) from error


def _ended_containers(engine: Engine, state: TestbedState) -> list[ContainerExit]:
    found = (engine.ended(each.id, each.host) for each in engine.containers(state.name) if not each.running)
    return [each for each in found if each is not None]


LOOK_S = 2.0
_SIGNAL = signal.SIGUSR2


class _EndedError(BaseException):
    """An exception that unwinds the block like Ctrl-C: code that retries after errors does not catch it."""


@contextmanager
def guarded(state: Callable[[], TestbedState], *, look_s: float = LOOK_S) -> Iterator[None]:
    """Check within the block, every `look_s`, that all containers of a testbed still run.

    `state` returns the testbed's present state: the block may add and remove hosts.
    When one does not, leave the block, run its clean-up as far as possible, and raise `NotWhole`. Only the main thread
    can be interrupted: on any other thread this checks nothing.
    """
    # A machine that exists is not looked at: that would be traffic on the NIC which is measured.
    if threading.current_thread() is not threading.main_thread() or state().machines:
        yield
        return
    watcher = _Watcher(state, look_s)
    before = signal.signal(_SIGNAL, _interrupt)
    watcher.start()
    try:
        try:
            yield
        finally:
            watcher.stop()
    except _EndedError:
        raise NotWhole(state(), watcher.found) from None
    finally:
        watcher.join()
        signal.signal(_SIGNAL, before)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise _EndedError


class _Watcher(threading.Thread):
    """A thread that interrupts its creator once, unless it was stopped before."""

    def __init__(self, state: Callable[[], TestbedState], look_s: float) -> None:
        super().__init__(name="guard", daemon=True)
        self.found = ""
        self._state, self._look_s = state, look_s
        self._whom = threading.get_ident()
        self._stopped = threading.Event()
        self._engine: Engine | None = None
        """The engines of several machines."""
        self._either = threading.Lock()
        """Guards stopping against interrupting: a late signal would interrupt the code after the block."""

    def stop(self) -> None:
        """Disable the interruption from now on."""
        with self._either:
            self._stopped.set()

    def run(self) -> None:
        """Check until something has ended."""
        try:
            while not self._stopped.wait(self._look_s):
                self.found = self._look()
                if self.found:
                    with self._either:
                        if not self._stopped.is_set():
                            signal.pthread_kill(self._whom, _SIGNAL)
                    return
        finally:
            self._disconnect()

    def _look(self) -> str:
        try:
            # Its own connection: two threads cannot share one. That to other machines is kept until the next look.
            state = self._state()
            if not state.machine_keys:
                with closing(Engine()) as engine:
                    return why_not_whole(engine, state)
            self._engine = self._engine or engine_of_state(state)
            return why_not_whole(self._engine, state)
        except TestbedError:
            self._disconnect()
            return ""  # the engine is being restarted: it reports the ended containers when it is back

    def _disconnect(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None
