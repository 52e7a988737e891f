"""`testbed results mute|floor`: what a user says of series, kept in the store."""

import argparse
import getpass
from collections.abc import Iterable
from datetime import UTC, datetime

from results.contract.maintenance import locked
from results.contract.store import Store, StoreError
from results.nights import policies, state
from results.nights.policies import Floor, Mute, Policies, SeriesPattern
from testbed.cli.run_selection import parse_age
from testbed.errors import TestbedError, UsageError


def mute(store: Store, args: argparse.Namespace) -> int:
    """Mute series until a time, end a mute, or print all mutes; return the exit code."""
    if not args.series:
        return _told(_mutes(policies.load(store)), "nothing is muted")
    now = datetime.now(UTC)
    if not args.remove and (args.reason is None or args.until is None):
        raise UsageError("mute: give --reason and --until, as --until 14d; --remove ends a mute")

    def changed(known: Policies) -> Policies:
        if args.remove:
            return known.without_mutes(args.series)
        until, at = parse_until(args.until, now).isoformat(timespec="seconds"), now.isoformat(timespec="seconds")
        by = args.by or getpass.getuser()
        return known.muted(Mute(each, args.reason, by, at, until) for each in args.series)

    return _told(_mutes(_change(store, changed, args)), "nothing is muted")


def floor(store: Store, args: argparse.Namespace) -> int:
    """Set a floor, remove it, or print all floors; return the exit code."""
    if not args.series:
        return _told(_floors(policies.load(store)), "there is no floor")

    def changed(known: Policies) -> Policies:
        if args.remove:
            return known.without_floors(args.series)
        for each in args.series:
            known = known.floored(Floor(each, args.never_above, args.never_below))
        return known

    return _told(_floors(_change(store, changed, args)), "there is no floor")


def _change(store: Store, changed: "policies.Change", args: argparse.Namespace) -> Policies:
    """Change the policies of a store under its lock, and return them; say which series none fits so far."""
    try:
        with locked(store):
            after = changed(policies.load(store))
            policies.save(store, after)
            known = state.load(store).values()
    except ValueError as error:
        raise UsageError(str(error)) from error
    except StoreError as error:
        raise TestbedError(str(error)) from error
    for text in args.series:
        if not args.remove and not _fits_any(text, known):
            print(f"{text}: no series has been judged that this names; it holds for those to come")
    return after


def _fits_any(text: str, known: Iterable[state.SeriesState]) -> bool:
    pattern = SeriesPattern.parse(text)
    anyhow = SeriesPattern(pattern.name, (), pattern.metric)  # a state does not have the scenario's parameters
    return any(anyhow.fits(each.series, each.scenario, each.experiment, each.metric, {}) for each in known)


def _mutes(known: Policies) -> list[str]:
    return [f"{each.series}: muted until {each.until} by {each.by}: {each.reason}" for each in known.mutes]


def _floors(known: Policies) -> list[str]:
    told = []
    for each in known.floors:
        values = (("above", each.never_above), ("below", each.never_below))
        told.append(
            f"{each.series}: never {', '.join(f'{word} {value:g}' for word, value in values if value is not None)}"
        )
    return told


def _told(lines: list[str], nothing: str) -> int:
    print("\n".join(lines or [nothing]))
    return 0


def parse_until(text: str, now: datetime) -> datetime:
    """Return the time of a date, a time or an age from now (`14d`). Raise `UsageError` when the text is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return now + parse_age("--until", text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
