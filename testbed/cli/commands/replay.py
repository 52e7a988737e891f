"""Replay an incident and judge its expectations."""

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from results.render import document, table
from testbed.cli.options import add_earlier, add_repeatable
from testbed.cli.output import timed_progress
from testbed.errors import UsageError
from testbed.units import format_byte_rate, format_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from results.contract.verdict import Verdict
    from testbed.incidents.model import Incident, IncidentFile, ScheduledEntry
    from testbed.incidents.replay import ReplayResult


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("incident", metavar="INCIDENT", help="an incident's file, or the name of a ready one")
    parser.add_argument("--variant", choices=("broken", "fixed"), help="the mistake, or its remedy (default: broken)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="seed of the records' contents (default: 0)")
    add_repeatable(parser, "--set", "NAME=VALUE", "a parameter of the file; repeatable")
    parser.add_argument(
        "--kafka", metavar="VERSION", help="a release, a tarball or a build's path, instead of the file's"
    )
    parser.add_argument(
        "--repeats", type=int, default=1, metavar="N", help="number of replays, each with its own verdict (default: 1)"
    )
    add_earlier(parser, "--repeat", "repeats", int)
    parser.add_argument("--on", metavar="NAME", help="a testbed that is up with the incident's topology; it stays up")
    parser.add_argument("--store", metavar="URI", help="the result store (default: under the XDG data folder)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--dry-run", action="store_true", help="print the timeline and play nothing; needs no engine")
    parser.epilog = (
        "Example: `testbed replay move-before-quota --variant fixed`.\n"
        "Exit codes: 0 every expectation was met, 1 one was not met, 2 one could not be judged."
    )


def _varied(words: list[str]) -> dict[str, str]:
    from testbed.experiments.experiment import require_once

    require_once(words)
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"--set {word}: expected NAME=VALUE, such as throttle=5MB/s")
        found[name] = value
    return found


def run(args: argparse.Namespace) -> int:
    from testbed.incidents.read import find

    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: allowed: 0 or more")
    if args.repeats < 1:
        raise UsageError(f"--repeats {args.repeats}: allowed: 1 or more")
    if args.dry_run and args.json:
        raise UsageError("--dry-run prints text; leave --json out")
    file = find(args.incident, _varied(args.set))
    if args.kafka:
        from testbed.runner.campaign import lasting_kafka

        file = on_release(file, args.kafka if args.dry_run else str(lasting_kafka(args.kafka)))
    if args.dry_run:
        chosen = [file.variant(args.variant)] if args.variant else [file.broken, file.fixed]
        print("\n\n".join(describe(incident, args.seed) for incident in chosen))
        return 0
    from testbed.cli.verdicts import EXIT
    from testbed.incidents.replay import ReplayRequest, replay

    request = ReplayRequest(file.variant(args.variant or "broken"), args.seed, args.on, args.store)
    progress, results = timed_progress(), []
    for _number in range(args.repeats):
        results.append(replay(request, progress))
        if not args.json:
            # Each at once: several replays take minutes.
            print(_as_text(results[-1]), flush=True)
    if args.json:
        print(document(_document(results[0]) if args.repeats == 1 else _document_of_several(results)))
    elif args.repeats > 1:
        print("\n" + _summary(results))
    return EXIT[overall(results)]


def on_release(file: "IncidentFile", kafka: str) -> "IncidentFile":
    """Return both variants on brokers of this release. Raise `UsageError` for a release that does not exist."""

    from testbed.software.source import parse_source

    version = str(parse_source(kafka))
    broken, fixed = (
        replace(each, topology=each.topology.with_kafka_version(version)) for each in (file.broken, file.fixed)
    )
    return replace(file, broken=broken, fixed=fixed)


def describe(incident: "Incident", seed: int) -> str:
    """Return the description of a replay of this variant: the initial cluster, the actions, and the expected result."""
    from testbed.incidents.forms import format_seconds
    from testbed.incidents.triggers import AtTime

    def order(entry: "ScheduledEntry") -> float:
        return entry.trigger.seconds if isinstance(entry.trigger, AtTime) else float("inf")

    lines = [f"{incident.name}, the {incident.variant} variant (seed {seed})", f"  {incident.variant_summary}", ""]
    lines += [*_beginning(incident), "", f"then, for {format_seconds(incident.lasts_s)} at most:"]
    for entry in sorted(incident.entries, key=order):
        when = str(entry.trigger)
        if entry.delay_s:
            when += f", {format_seconds(entry.delay_s)} later"
        if not isinstance(entry.trigger, AtTime):
            when += " (may not come)" if entry.optional else f" (by {format_seconds(entry.deadline_s)})"
        lines.append(f"  {when}: {entry.name}")
        lines += [f"      do {action}" for action in entry.actions]
        lines += [f"      expect {expectation}" for expectation in entry.expectations]
    failures = ", ".join(incident.expected_failures)
    outcome = f"it fails {failures}" if failures else "every expectation is met"
    return "\n".join([*lines, "", f"the expected outcome: {outcome}"])


def _beginning(incident: "Incident") -> list[str]:
    topology, state = incident.topology, incident.state
    kafka = ", ".join(dict.fromkeys(str(host.kafka_version) for host in topology.brokers))
    lines = [f"topology {topology.name}: brokers {', '.join(host.name for host in topology.brokers)}, Kafka {kafka}"]
    for name, topic in state.topics.items():
        where = " / ".join(dict.fromkeys(", ".join(hosts) for hosts in topic.placement))
        filled = f"{format_size(topic.bytes, 3)} in" if topic.bytes else "empty,"
        lines.append(f"topic {name}: {filled} {topic.partitions} partitions on {where}")
        lines += [f"  {key}={value}" for key, value in topic.configs.items()]
    lines += [f"brokers: {key}={value}" for key, value in state.properties.items()]
    if state.throttle is not None:
        topics = ", ".join(state.throttle.topics) or "no topic"
        lines.append(f"a throttle of {format_byte_rate(state.throttle.rate)} is set already, for {topics}")
    for load in incident.loads:
        rate, size = format_byte_rate(load.produce), format_size(load.record_size)
        lines.append(f"load: {rate} to {load.to}, in records of {size}")
    if incident.defects:
        lines.append(f"broken on purpose: {', '.join(incident.defects)}")
    if incident.parameters:
        lines.append("parameters: " + ", ".join(f"{name}={value}" for name, value in incident.parameters.items()))
    return lines


def _as_text(result: "ReplayResult") -> str:
    from testbed.cli.verdicts import criterion_lines

    expected = "as expected" if result.deviation is None else f"not as the file expects: {result.deviation}"
    return "\n".join(
        [
            *criterion_lines(result.criteria),
            "",
            f"{result.verdict.upper()}  {result.experiment}  {result.variant}  {result.run_id}",
            expected,
            f"report {result.report}",
        ]
    )


def overall(results: "Sequence[ReplayResult]") -> "Verdict":
    """Return the verdict of several replays: fail when one failed, else inconclusive when one was not judged."""
    verdicts = {each.verdict for each in results}
    return "fail" if "fail" in verdicts else "inconclusive" if "inconclusive" in verdicts else "pass"


def _summary(results: "Sequence[ReplayResult]") -> str:
    """Return a table: in how many replays each criterion failed, with the interval of the probability."""

    counts = _counts(results)
    rows = [(each["name"], each["failed"], each["passed"], each["inconclusive"], _percents(each)) for each in counts]
    expected = sum(each.deviation is None for each in results)
    return "\n".join(
        [
            table(("criterion", "failed", "passed", "inconclusive", "probability of a failure, 95 %"), rows),
            "",
            f"{expected} of {len(results)} replays as the file expects",
        ]
    )


def _percents(count: "Mapping[str, Any]") -> str:
    return "-" if count["interval"] is None else " to ".join(f"{bound * 100:.0f} %" for bound in count["interval"])


def _counts(results: "Sequence[ReplayResult]") -> "list[dict[str, Any]]":
    """Return each criterion with its verdicts over the replays. One that fails for any host or direction failed."""
    from results.compare.effect import binomial_interval

    names = list(dict.fromkeys(found.name for each in results for found in each.criteria))
    counts = []
    for name in names:
        verdicts = [{found.verdict for found in each.criteria if found.name == name} for each in results]
        failed = sum("fail" in each for each in verdicts)
        unknown = sum("inconclusive" in each and "fail" not in each for each in verdicts)
        passed = sum(each == {"pass"} for each in verdicts)
        judged = failed + passed
        counts.append(
            {
                "name": name,
                "failed": failed,
                "passed": passed,
                "inconclusive": unknown,
                "interval": list(binomial_interval(failed, judged)) if judged else None,
            }
        )
    return counts


def _document_of_several(results: "Sequence[ReplayResult]") -> "dict[str, Any]":
    return {
        "verdict": overall(results),
        "replays": [_document(each) for each in results],
        "criteria": _counts(results),
        "as_expected": sum(each.deviation is None for each in results),
    }


def _document(result: "ReplayResult") -> "dict[str, Any]":
    return asdict(result) | {"matches_expectation": result.deviation is None}
