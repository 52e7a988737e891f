"""Add, list and clear faults: failures on purpose."""

import argparse
import time
from contextlib import closing
from typing import TYPE_CHECKING

from results.render import document, table
from testbed.argument_parser import Parser
from testbed.errors import TestbedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Example: `testbed fault add three-brokers nic-rate host=b2 rate=50mbit`."
    actions = parser.add_subparsers(dest="action", required=True, parser_class=Parser)
    add = actions.add_parser("add", help="cause a fault, and verify its effect; it stays until a user clears it")
    add.add_argument("name", help="a testbed that is up")
    add.add_argument("fault", nargs="+", help="kind and parameters, such as nic-rate host=b2 rate=50mbit; repeatable")
    listed = actions.add_parser("list", help="list the active faults of a testbed")
    listed.add_argument("name", help="a testbed that is up")
    listed.add_argument("--json", action="store_true", help="print one JSON document")
    clear = actions.add_parser("clear", help="heal faults, back to what the topology declares")
    clear.add_argument("name", help="a testbed that is up")
    clear.add_argument(
        "id", nargs="?", type=int, help="the id of one fault (default: all, except faults of running processes)"
    )
    kinds = actions.add_parser(
        "kinds", help="list every kind of fault, its parameters, and what the machine lacks for it"
    )
    kinds.add_argument("name", nargs="?", help="a testbed or a topology: also list what it lacks")
    kinds.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    {"add": _add, "list": _list, "clear": _clear, "kinds": _kinds}[args.action](args)
    return 0


def _add(args: argparse.Namespace) -> None:
    from testbed.faults import Faults, as_text, parse_fault
    from testbed.faults.parse import split_faults
    from testbed.provision.testbed import Testbed

    parsed = [parse_fault(text) for text in split_faults(args.fault)]
    testbed = Testbed.attach(args.name)
    faults = Faults(testbed, by_hand=True)
    for fault in parsed:
        fault.check(testbed.topology)
    added: list[int] = []
    try:
        for fault in parsed:
            begun = time.monotonic()
            added.append(faults.add(fault))
            effect = f"{added[-1]}: {as_text(fault)}, in effect after {time.monotonic() - begun:.1f} s"
            if fault.momentary:
                faults.clear(added.pop())
                effect += ", and over"
            print(effect, flush=True)
    except BaseException:
        # All faults or none: the last fault may already be healed.
        for entry_id in reversed(added):
            faults.clear(entry_id)
            print(f"{entry_id}: healed, because another could not be put in")
        raise


def _list(args: argparse.Namespace) -> None:
    from testbed.faults import as_text
    from testbed.faults.journal import FaultJournal
    from testbed.provision.state import load

    if load(args.name) is None:
        raise UsageError(f"there is no testbed {args.name}; `testbed ls` lists them")
    entries = FaultJournal(args.name).entries()
    if args.json:
        print(document([entry.document() for entry in entries]))
    elif entries:
        print(table(("ID", "FAULT", "SINCE", "BY"), [(e.id, as_text(e.fault), e.since, e.by) for e in entries]))
    else:
        print("no faults")


def _clear(args: argparse.Namespace) -> None:
    from testbed.faults import Faults, as_text
    from testbed.provision.testbed import Testbed

    faults = Faults(Testbed.attach(args.name))
    for entry in faults.clear(args.id):
        print(f"{entry.id}: {as_text(entry.fault)}, healed")
    for entry in faults.list() if args.id is None else ():
        print(f"{entry.id}: {as_text(entry.fault)}, not healed: it belongs to {entry.by}; name its id to heal it")


def _kinds(args: argparse.Namespace) -> None:
    from testbed.faults import kinds
    from testbed.faults.parse import parameters, usage

    refusals = _refusals(args.name)
    if args.json:
        print(
            document(
                {
                    name: {
                        "summary": kind.summary,
                        "usage": usage(kind),
                        "parameters": {each.name: each.metadata["help"] for each in parameters(kind)},
                        "available": not refusals[name],
                        "why_not": refusals[name],
                    }
                    for name, kind in kinds().items()
                }
            )
        )
        return
    for name, kind in kinds().items():
        print(f"{usage(kind)}\n    {kind.summary}")
        for each in parameters(kind):
            print(f"    {each.name}: {each.metadata['help']}")
        if refusals[name]:
            print(f"    not here: {refusals[name]}")


def _refusals(name: str | None) -> "Mapping[str, str]":
    """Return why each kind of fault is not available, here or in a testbed or topology; empty when it is."""
    from testbed.faults import kinds
    from testbed.provision.state import load, names
    from testbed.provision.testbed import Testbed
    from testbed.topology import load_document
    from testbed.topology.find import find

    state = load(name) if name is not None and name in names() else None
    topology = None if name is None else find(name) if state is None else load_document(dict(state.topology))
    if (topology is None or not topology.exists) and (engine := _no_engine()):
        return dict.fromkeys(kinds(), engine)
    if topology is None:
        return {kind: each.lacking() for kind, each in kinds().items()}
    if state is None or state.status != "up" or topology.has_unshaped_network:
        return {kind: each.unavailable(topology, {}) for kind, each in kinds().items()}
    with closing(Testbed.attach(state.name, whole=False)) as testbed:  # the other machines are asked, too
        return {kind: each.unavailable(topology, testbed.machine_shells) for kind, each in kinds().items()}


def _no_engine() -> str:
    """Return why no testbed can have a fault: the engine does not answer; empty when it does."""
    from testbed.provision.containers import Engine

    try:
        with closing(Engine()) as engine:
            engine.info()
    except TestbedError as error:
        return str(error)
    return ""
