"""Play every defect on real brokers, and print which ones the criteria find."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from results.render import NOTHING, Code, document, markdown_table, table
from testbed.cli.options import add_earlier, add_kafka, add_repeatable
from testbed.cli.output import require_writable, timed_progress, write

if TYPE_CHECKING:
    from testbed.runner.detection import DefectDetection
    from testbed.runner.selftest import SelftestResult


WAYS = ("run", "brief", "compare", "nightly", "qualify")
"""As in `testbed.runner.selftest`, whose import takes a second."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_repeatable(
        parser,
        "--defect",
        "NAME[@HOST,…][:key=value,…]",
        "only this defect; a name alone means each of its sizes, A+B both at once; repeatable",
    )
    parser.add_argument(
        "--by",
        choices=WAYS,
        help="what must find it: one run, suite brief, pairs, nights of brief, or a qualification (default: run)",
    )
    add_repeatable(parser, "--scenario", "NAME", "of suite brief: only this scenario; repeatable")
    add_earlier(parser, "--case", "scenario", action="append")
    parser.add_argument(
        "--repeats",
        type=int,
        metavar="N",
        help="plays of each defect, pairs, nights, or runs of each version (default: 1, 8, 3, 3)",
    )
    parser.add_argument(
        "--healthy",
        type=int,
        metavar="N",
        help="plays of healthy brokers for each experiment (default: that of --repeats)",
    )
    parser.add_argument("--history", type=int, metavar="N", help="healthy nights before the broken ones (default: 10)")
    add_kafka(parser, "the topologies'")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the order of the runs (default: 1)")
    parser.add_argument("--budget", metavar="TIME", help="begin no run that would end after this time, such as 2h")
    parser.add_argument("--resume", metavar="ID", help="continue an interrupted self-test; repeats no run")
    parser.add_argument("--store", metavar="URI", help="the store of the runs (default: a store of self-tests alone)")
    parser.add_argument("--out", metavar="FILE", type=Path, help="also write the table as Markdown to this file")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.epilog = (
        "Example: `testbed selftest --defect leader-throttle-leak --repeats 5`.\n"
        "Exit codes: 0 every defect was found and healthy brokers gave no alarm, 1 a defect was missed or there was\n"
        "an alarm, 2 it is not known."
    )


def run(args: argparse.Namespace) -> int:
    from testbed.cli.campaign_output import or_else, refuse_with_resume
    from testbed.runner.execution import parse_budget
    from testbed.runner.selftest import RUN, SelftestRequest, selftest, way_of

    if args.resume:
        refuse_with_resume(args, "begin a new self-test without --resume")
    budget_s = parse_budget(args.budget)
    require_writable(args.out)
    asked = SelftestRequest(
        defects=tuple(args.defect),
        by=args.by or RUN,
        repeats=args.repeats,
        healthy=args.healthy,
        history=args.history,
        cases=tuple(args.scenario),
        kafka=args.kafka,
        seed=or_else(args.seed, 1),
        store=args.store,
    )
    result = selftest(None if args.resume else asked, args.resume, budget_s, timed_progress())
    if args.out:
        write(args.out, as_markdown(result, way_of(result.campaign)))
    print(as_json(result) if args.json else as_text(result))
    return result.exit_code


HEADER = ("RESULT", "DEFECT", "RUN", "FOUND", "AFTER", "95 % INTERVAL", "BY", "EXPECTED")


def row(each: "DefectDetection") -> tuple[str, ...]:
    """Return the cells of a defect, or of healthy brokers."""
    low, high = each.interval or (0.0, 0.0)
    expected = {True: "yes", False: "no"}[each.as_expected] if each.by and not each.healthy else NOTHING
    return (
        _word(each, each.result),
        each.name,
        " ".join([each.experiment, *each.settings]),
        f"{each.found} of {len(each.played)}",
        str(each.after or NOTHING),
        f"{low:.0%} to {high:.0%}" if each.interval else NOTHING,
        ", ".join(f"{name} ({count})" if count > 1 else name for name, count in _by(each).items()) or NOTHING,
        expected,
    )


def _word(each: "DefectDetection", result: str) -> str:
    """Return the word of a result; of healthy brokers, whether there was an alarm."""
    if not each.healthy:
        return result
    return {"found": "false alarm", "sometimes": "false alarm", "missed": "no alarm"}.get(result, result)


def _by(each: "DefectDetection") -> dict[str, int]:
    """Return the names that found it, without hosts and directions."""
    from testbed.runner.detection import criterion_of

    found: dict[str, int] = {}
    for name, count in each.by.items():
        own = criterion_of(name)
        found[own] = max(found.get(own, 0), count)
    return found


def summary(result: "SelftestResult") -> str:
    """Return one line: how many defects were found, missed and not known, and how many false alarms there were."""
    broken = [each for each in result.detections if not each.healthy]
    counts = {word: sum(each.result == word for each in broken) for word in dict.fromkeys(e.result for e in broken)}
    healthy = sum(len(each.played) for each in result.detections if each.healthy)
    summary = ", ".join(f"{count} {word}" for word, count in counts.items()) or "no defect played"
    return f"{summary}; {result.alarms} alarms in {healthy} plays of healthy brokers"


def as_text(result: "SelftestResult") -> str:
    """Return the table, a line for each play that came to nothing, and the summary."""
    lines = [table(HEADER, [row(each) for each in result.detections]), ""]
    for each in result.detections:
        lines += [f"{each.name}: {_word(each, trial.result)}: {trial.why}" for trial in each.trials if trial.why]
    again = "" if result.complete else f"; `testbed selftest --resume {result.campaign.id}` continues it"
    return "\n".join([*lines, f"{summary(result)}  ({result.campaign.id}: {result.why_ended}{again})"])


def as_json(result: "SelftestResult") -> str:
    """Return one JSON document with every play and its runs."""
    return document(
        {
            "series": result.campaign.id,
            "store": result.campaign.store,
            "kafka": result.kafka,
            "complete": result.complete,
            "ended": result.why_ended,
            "false_alarms": result.alarms,
            "detections": [_document(each) for each in result.detections],
        }
    )


def _document(each: "DefectDetection") -> dict[str, Any]:
    return {
        "name": each.name,
        "defects": each.defects,
        "experiment": each.experiment,
        "settings": each.settings,
        "result": _word(each, each.result),
        "found": each.found,
        "of": len(each.played),
        "after": each.after,
        "interval": each.interval,
        "by": each.by,
        "expected": each.expected,
        "as_expected": each.as_expected,
        "plays": each.trials,
    }


def as_markdown(result: "SelftestResult", how: str) -> str:
    """Return the table as a page. `how` is the way in which defects were looked for."""
    cells = []
    for each in result.detections:
        first, name, run, *others = row(each)
        cells.append((first, Code(name), Code(run), *others))
    header = ("", "defect", "run", "found", "after", "95 % interval", "by", "expected")
    notes = [
        f"- {each.name}: {_word(each, t.result)}: {' '.join(t.why.split())}"
        for each in result.detections
        for t in each.trials
        if t.why
    ]
    return "\n".join(
        [
            f"# Self-test by `{how}`, Kafka {', '.join(result.kafka)}",
            "",
            f"{summary(result)}.",
            "[What the columns mean](../selftest.md#the-table)",
            "",
            *markdown_table(header, cells),
            *(["", *notes] if notes else []),
            "",
        ]
    )
