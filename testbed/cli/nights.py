"""`testbed results judge|ack`: judge the series of a store night by night, and acknowledge changes."""

import argparse
import getpass
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from results.contract.maintenance import locked
from results.contract.store import Store
from results.contract.texts import plural
from results.nights import policies, render, state
from results.nights.night import Night, SeriesInfo, night
from results.nights.scenarios import TONIGHT, ScenarioResult, scenarios, worst
from results.render import document
from results.series.history import Acknowledgement
from results.verdicts import EXIT
from testbed.cli.output import require_writable, write
from testbed.cli.store_maintenance import store_errors
from testbed.errors import TestbedError, UsageError
from testbed.paths import reports_dir
from testbed.suggestions import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from testbed.runner.nightly import NightRuns


PATIENCE = timedelta(minutes=10)
"""How long a night's judgement waits while another command changes the store; its runs took hours."""


@contextmanager
def spark_of(args: argparse.Namespace) -> "Iterator[SparkSession]":
    """Yield a session on the master of `--master`. Raise `TestbedError` when there is none, or the store fails."""
    from results.spark.session import SparkMissing, session

    try:
        with store_errors(), session(args.master, args.memory) as spark:
            yield spark
    except SparkMissing as error:
        raise TestbedError(f"{error}\n--master is {args.master}, --memory is {args.memory}") from error


def judge(store: Store, args: argparse.Namespace) -> int:
    """Take in new runs, judge the nights since the last judgement, print the result; return the exit code."""
    require_writable(args.junit, args.report)
    done, found = _night(store, args, args.report)
    report(store, done, found, args, {})
    return EXIT[worst(found, done.problems)]


def _night(
    store: Store, args: argparse.Namespace, page: Path | None, made: "NightRuns | None" = None
) -> tuple[Night, list[ScenarioResult]]:
    """Judge the series that the report names, and write the page if given; return the night and its results."""
    # An interrupted night may have been resumed days later, and the store may hold other runs, too.
    now = datetime.now(UTC)
    begun = made.result.campaign.begun if made is not None else None
    took = TONIGHT if begun is None else now - begun
    wait = PATIENCE if made is not None else timedelta()
    experiments = getattr(args, "experiment", None) or ()

    def wanted(each: SeriesInfo) -> bool:
        asked = not experiments or each.experiment in experiments
        return asked and (made is None or each.scenario in made.scenarios)

    with spark_of(args) as spark:
        # Read first: what a judgement finds is stored as reported, so nothing may fail between it and the output.
        users = policies.load(store)
        done = night(spark, store, include_noisy=args.include_noisy, wait=wait, now=now, begun=begun, wanted=wanted)
        if strange := sorted(set(experiments) - set(_had(done))):
            unknown = f"--experiment {strange[0]}: the store has no run of it{did_you_mean(strange[0], _had(done))}"
            done = replace(done, problems=(*done.problems, unknown))
        if made is not None:
            done = replace(done, problems=(*done.problems, *made.problems))
        found = scenarios(
            done,
            experiments=experiments,
            only=made.scenarios if made is not None else None,
            ran=made.ran if made is not None else None,
            now=now,
            tonight=max(TONIGHT, took),
            begun=begun,
            policies=users,
        )
        if page is not None:
            from results.nights.recent_values import recent_values
            from results.report.nights import render_nights

            drawn = recent_values(spark, store, found, include_noisy=args.include_noisy, now=now)
            write(page, render_nights(store.location, done, found, drawn, _links(page)))
    return done, found


def report_night(made: "NightRuns", args: argparse.Namespace) -> int:
    """Judge a night, write report and JUnit, print the result; return the exit code: not 0 when a case is missing."""
    result, campaign = made.result, made.result.campaign.id
    store = Store.open(result.campaign.store)
    folder = args.out or reports_dir() / campaign
    page, args.junit = folder / "index.html", args.junit or folder / "junit.xml"
    if not result.state.ran:
        raise TestbedError(f"nothing of this night could be run: {result.why_ended}; --resume {campaign} continues it")
    try:
        done, found = _night(store, args, page, made)
    except TestbedError as error:
        again = f"`testbed nightly --resume {campaign}` judges them"
        raise TestbedError(f"{error}; the night's runs are in the store, and {again}") from error
    own = {"night": campaign, "complete": result.complete, "ended": result.why_ended}
    report(store, done, found, args, own | {"report": str(page), "junit": str(args.junit)})
    if not result.complete:
        print(f"{result.why_ended}; `testbed nightly --resume {campaign}` continues it", file=sys.stderr)
    print(f"report {page}\njunit {args.junit}", file=sys.stderr)
    return EXIT[worst(found, done.problems)]


def _had(done: Night) -> list[str]:
    return sorted({each.experiment for each in done.about})


def _links(page: Path) -> Callable[[str], str | None]:
    """Return a function from a run to its report's relative link, or to None without a report on this machine."""
    folder = reports_dir()
    there = {path.stem for path in folder.glob("*.html")}

    def link(run_id: str) -> str | None:
        path = os.path.relpath(folder / f"{run_id}.html", page.absolute().parent)
        return quote(path) if run_id in there else None

    return link


def report(
    store: Store, done: Night, found: list[ScenarioResult], args: argparse.Namespace, own: Mapping[str, object]
) -> None:
    """Print the results in the format that the user chose; `own` are further members of the JSON document."""
    if args.junit:
        write(args.junit, render.junit(found, done.problems))
    if args.json:
        print(document({**render.as_json(store.location, found, done.problems, done.ingested), **own}))
        return
    if args.markdown:
        print(render.markdown(found, done.problems), end="")
        return
    for line in render.lines(found):
        print(line)
    for problem in done.problems:
        print(f"problem: {problem}")
    if not found:
        print(f"nothing to judge in {store.location}: it has no run, or none of the requested runs")
    counts = f"{plural(len(found), 'scenario')}, {plural(done.ingested, 'new run')}"
    print(f"\n{worst(found, done.problems)}  {counts}  {store.location}")


@store_errors()
def ack(store: Store, args: argparse.Namespace) -> int:
    """Acknowledge changes; return the exit code."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    by = Acknowledgement(args.reason, args.by or getpass.getuser(), now)
    try:
        with locked(store):
            before = state.load(store)
            after, done = state.acknowledge(before, args.series, by, args.run)
            state.save(store, after.values())
    except ValueError as error:
        raise UsageError(str(error)) from error
    for own, one in done:
        effect = f"{one.change.effect:+.1%} " if one.change.effect is not None else ""
        print(f"acknowledged: {own.experiment} {own.metric} [{own.series}] {effect}since {one.first_bad}")
    return 0
