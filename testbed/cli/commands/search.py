"""Search for incidents that break an invariant, and shrink them."""

import argparse
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from results.render import document, table
from testbed.cli.options import add_defects, add_kafka
from testbed.cli.output import require_writable, timed_progress
from testbed.errors import UsageError
from testbed.signals import TerminationGuard

if TYPE_CHECKING:
    from testbed.search.database import Database
    from testbed.search.search import SearchResult

OF_A_NEW_ONE = ("topology", "seed", "kafka", "out")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topology", metavar="TOPOLOGY", help="a ready topology or a file (default: three-brokers)")
    parser.add_argument("--budget", metavar="TIME", default="2h", help="how long to search (default: 2h)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the drawn incidents (default: 1)")
    add_kafka(parser, "the topology's")
    add_defects(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, help="a new folder for the search (default: search-SEED)")
    parser.add_argument("--resume", metavar="DIR", type=Path, help="continue this search; repeats no try")
    parser.add_argument("--findings", type=int, metavar="N", help="end after this number of found incidents")
    parser.add_argument("--tries", type=int, metavar="N", help="end after this number of drawn incidents")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.epilog = (
        "Example: `testbed search --topology six-brokers --seed 7 --budget 8h`.\n"
        "Exit codes: 0 no invariant failed, 1 incidents were found, 2 no try could be judged."
    )


def run(args: argparse.Namespace) -> int:
    from results.contract.store import Store
    from testbed.runner.execution import parse_budget
    from testbed.search.replayer import Replayer, topology_of
    from testbed.search.search import Search, SearchLimits
    from testbed.search.space import Space

    budget_s = parse_budget(args.budget)
    assert budget_s is not None
    for name in ("findings", "tries"):
        if (given := getattr(args, name)) is not None and given < 1:
            raise UsageError(f"--{name} {given}: allowed: 1 or more")
    database = _database(args)
    settings, progress = database.settings, timed_progress()
    topology = topology_of(settings)
    store = Store.open(str(database.folder / "store"))
    began = time.monotonic()
    with TerminationGuard(), Replayer(settings, store, progress) as replayer:
        search = Search(
            Space(settings.topology, topology, settings.fault_kinds),
            database,
            replayer.play,
            lambda: time.monotonic() - began,
            budget_s,
            SearchLimits(args.findings, args.tries),
            progress,
        )
        result = search.run()
    print(_as_json(result, database) if args.json else _as_text(result, database))
    return result.exit_code


def _database(args: argparse.Namespace) -> "Database":
    from testbed.runner.campaign import lasting_kafka, lasting_topology
    from testbed.search.database import Database, SearchSettings
    from testbed.search.replayer import topology_of
    from testbed.search.space import Space

    if args.resume is not None:
        given = [name for name in OF_A_NEW_ONE if getattr(args, name) is not None] + ["defect"] * bool(args.defect)
        if given:
            raise UsageError(f"--resume continues a search with its own settings: leave --{', --'.join(given)} out")
        return Database.opened(args.resume)
    seed = 1 if args.seed is None else args.seed
    if seed < 0:
        raise UsageError(f"--seed {seed}: allowed: 0 or more")
    name = lasting_topology(args.topology) or "three-brokers"
    settings = SearchSettings(name, seed, tuple(args.defect), lasting_kafka(args.kafka))
    topology = topology_of(settings)
    releases = {host.kafka_version for host in topology.hosts if host.role.runs_kafka}
    if settings.kafka is None and len(releases) == 1:
        # The topology may have another release when somebody continues the search, or replays what it found.
        settings = replace(settings, kafka=lasting_kafka(releases.pop()))
    settings = replace(settings, fault_kinds=tuple(Space(settings.topology, topology).faults()))
    folder = args.out or Path(f"search-{seed}")
    require_writable(folder / "store")
    return Database.new(folder, settings)


def _as_text(result: "SearchResult", database: "Database") -> str:
    from testbed.faults.parse import kinds as fault_kinds
    from testbed.search.coverage import PHASES

    lines = [f"{result.tries} tries, {result.judged} of them judged; {result.why_ended}"]
    if database.settings.defects:
        lines.append(f"the brokers were broken on purpose: {', '.join(database.settings.defects)}")
    names = sorted({*result.kept, *result.unknown, *result.again, *(each.invariant for each in result.found)})
    failed = {name: result.again.get(name, 0) + sum(e.invariant == name for e in result.found) for name in names}
    rows = [(name, failed[name], result.kept.get(name, 0), result.unknown.get(name, 0)) for name in names]
    lines += ["", table(("invariant", "failed", "held", "not judged"), rows)] if rows else []
    seen = result.coverage.seen
    kinds = sorted({*result.kinds, *(kind for kind, _phase in seen)})
    pairs = [(kind, *(seen[kind, phase] or "-" for phase in PHASES)) for kind in kinds]
    missing = len(result.coverage.missing(result.kinds))
    lines += ["", table(("fault or action", *PHASES), pairs), f"{missing} pairs of a fault and a phase were not seen"]
    if undrawn := sorted(fault_kinds().keys() - {*result.kinds}):
        why = "the topology or this machine cannot have it, or no value is known"
        lines.append(f"not drawn, because {why}: {', '.join(undrawn)}")
    for each in result.found:
        lines += [
            "",
            f"FOUND  {each.invariant}: {each.why}",
            f"  by try {each.tries}, after {each.found_s:.0f} s; shrunk from {each.from_steps} to "
            f"{len(each.draft.steps)} steps in {each.replays} replays, {each.shrunk_s:.0f} s",
            f"  fails in {each.probability()}"
            + ("" if each.minimal else "; the budget ended before it was minimal and confirmed"),
            f"  {each.file}",
        ]
    lines += [f"not confirmed: {text}" for text in result.unconfirmed]
    lines += ["", f"`testbed search --resume {database.folder}` continues it"]
    return "\n".join(lines)


def _as_json(result: "SearchResult", database: "Database") -> str:
    found = [{**asdict(each), "interval": list(each.interval)} for each in result.found]
    whole = {
        "folder": str(database.folder),
        "settings": asdict(database.settings),
        "tries": result.tries,
        "judged": result.judged,
        "ended": result.why_ended,
        "found": found,
        "unconfirmed": result.unconfirmed,
        "kept": result.kept,
        "not_judged": result.unknown,
        "void": result.void,
        "pairs": [{"kind": kind, "phase": phase, "tries": n} for (kind, phase), n in result.coverage.seen.items()],
        "missing": [{"kind": kind, "phase": phase} for kind, phase in result.coverage.missing(result.kinds)],
    }
    return document(whole)
