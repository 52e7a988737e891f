"""The start or the resume of a campaign, its runs, Spark's confirmation of them, and their judgement."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from results.contract.store import Store
from results.contract.texts import plural
from testbed.errors import TestbedError, UsageError
from testbed.experiments.experiment_run import Progress, confirm
from testbed.experiments.record import recorded_by, this_testbed
from testbed.experiments.reports import write_report
from testbed.experiments.spark import spark_session
from testbed.extras import require_extra
from testbed.runner.campaign import Campaign, fewest_pairs, large_only
from testbed.runner.canary import keep_readings
from testbed.runner.comparison import CampaignOutcome, findings, mixed_software, narrow_enough, not_made, outcome
from testbed.runner.execution import CampaignLimits, execute
from testbed.runner.executor import TestbedExecutor
from testbed.runner.journal import CampaignJournal, CampaignState, RunsConfirmed, campaign_state, created, opened
from testbed.runner.schedule import Slot
from testbed.runner.variant import resolve

NeedlessSlots = Callable[[Campaign, Slot, CampaignState], bool]
"""A function that returns whether a slot's run is needless, given the runs so far."""


def needs_all(_campaign: Campaign, _slot: Slot, _state: CampaignState) -> bool:
    """Declare every slot needed."""
    return False


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """A campaign's result. `complete`: `--resume` would make no run. `problems` are missing runs, with the reason."""

    campaign: Campaign
    state: CampaignState
    outcome: CampaignOutcome
    why_ended: str
    complete: bool
    problems: tuple[str, ...] = ()


def run_campaign(
    asked: Campaign | None,
    campaign_id: str | None,
    command: str,
    budget_s: float | None,
    progress: Progress,
    *,
    stop_early: bool = False,
    needless: NeedlessSlots = needs_all,
) -> CampaignResult:
    """Run the new campaign `asked`, or resume the one of `campaign_id`; return its result.

    A resumed campaign must be one of `command`, with the same runs as `asked` if both are given. Raise `UsageError`
    when it cannot be resumed, and `TestbedError` when it fails; `--resume` continues after the finished runs. Begin no
    run without Spark, which judges all of them at the end.
    """
    require_extra("pyspark")
    if campaign_id is not None:
        with opened(campaign_id) as journal:
            _require_same(journal.campaign, asked, command)
            return _go_on(journal, budget_s, progress, stop_early, needless)
    assert asked is not None
    _require_kafkas(asked)
    with created(asked) as journal:
        most = "" if needless is needs_all else "at most "
        runs = plural(len(asked.slots), "run")
        progress(f"campaign {asked.id}: {most}{runs}; after an interruption: --resume {asked.id}")
        if note := large_only(asked):
            progress(note)
        return _go_on(journal, budget_s, progress, stop_early, needless)


def _require_kafkas(asked: Campaign) -> None:
    """Raise `UsageError` when the Kafkas of a variant cannot run it, and `SoftwareError` when one is not available.

    A resumed campaign is not checked: its Kafkas may be gone when all of its runs are made.
    """
    for each in map(resolve, asked.variants):
        each.experiment.check_kafka(each.settings, each.topology, None)


def _require_same(campaign: Campaign, asked: Campaign | None, command: str) -> None:
    if campaign.command != command:
        raise UsageError(f"{campaign.id} was begun by `testbed {campaign.command}`; resume it with that command")
    different = campaign.with_present_builds().differences(asked) if asked is not None else []
    if different:
        raise UsageError(
            f"campaign {campaign.id} began with other options; give --resume {campaign.id} alone, or begin a new "
            "campaign:\n  " + "\n  ".join(different)
        )
    for variant, topology_digest in zip(campaign.variants, campaign.topology_digests, strict=True):
        if resolve(variant).topology_digest != topology_digest:
            raise UsageError(
                f"variant {variant.label}: the topology has changed since campaign {campaign.id} began; "
                "put it back, or begin a new campaign"
            )


def _go_on(
    journal: CampaignJournal, budget_s: float | None, progress: Progress, stop_early: bool, needless: NeedlessSlots
) -> CampaignResult:
    campaign = journal.campaign
    store = Store.open(campaign.store)
    fewest = fewest_pairs(campaign)

    def enough(state: CampaignState) -> str | None:
        return narrow_enough(findings(campaign, state), campaign.threshold, fewest) if stop_early else None

    try:
        with TestbedExecutor(campaign, store, progress) as slots:
            limits = CampaignLimits(budget_s, enough, needless=partial(needless, campaign))
            ended = execute(journal, slots, limits, progress)
    finally:  # an interrupted campaign may never be resumed, but its runs are judged with these readings
        keep_readings(store, campaign_state(journal.entries), progress)
    progress(ended.why)
    _confirm(journal, store, progress)
    state = campaign_state(journal.entries)
    if mixed := mixed_software(campaign, state):
        raise TestbedError(
            f"variant {mixed[0]} did not have the same Kafka in all runs of campaign {campaign.id}: what it names was "
            "built again in between. Begin a new campaign"
        )
    problems = not_made(campaign, state)
    return CampaignResult(campaign, state, outcome(campaign, state), ended.why, ended.complete, problems)


def _confirm(journal: CampaignJournal, store: Store, progress: Progress) -> None:
    """Have Spark judge all new runs again, from the store, after the measurements; write the runs' reports."""
    state = campaign_state(journal.entries)
    new = [ran.done.run_id for ran in state.ran.values() if ran.done.run_id not in state.confirmed]
    if not new:
        return
    try:
        with spark_session() as spark:
            judgements = confirm(spark, store, new)
    except TestbedError as error:
        again = f"--resume {journal.campaign.id} has them judged"
        raise TestbedError(f"{error}\nall runs so far are in {store.location}, and {again}") from error
    manifests, here = [store.manifest(run_id) for run_id in new], this_testbed()
    for run in manifests:
        write_report(store, run, judgements[run.run_id])
    journal.append(RunsConfirmed(tuple(new)))
    others = sum(recorded_by(run) != here for run in manifests)
    but = f", perhaps except {plural(others, 'run')} of another version of the testbed" if others else ""
    progress(f"{plural(len(new), 'run')} judged again from the store, in Spark: the same verdicts{but}")
