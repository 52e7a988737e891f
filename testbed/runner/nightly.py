"""A night: every case of a suite is run once, and again where that run is in doubt; then the store is judged.

A night is a campaign with the usual journal, canaries, budget and resume. Its variants are scenarios, and
`results/nights` compares each of them with its own past.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from results.compare.compared_measures import find_measure
from results.contract.store import Store
from results.nights import policies
from results.nights.earlier_values import EarlierValues, earlier_values, in_doubt
from results.nights.values import environment_id, scenario_id
from results.series.calculator import FEWEST_AFTER
from testbed.errors import UsageError
from testbed.experiments.experiment_run import Progress
from testbed.runner.campaign import NIGHTLY, Campaign, lasting_kafka, new_campaign
from testbed.runner.campaign_run import CampaignResult, NeedlessSlots, run_campaign
from testbed.runner.comparison import not_made
from testbed.runner.journal import CampaignState, RunDone, stored
from testbed.runner.schedule import Slot
from testbed.runner.variant import Resolved, Variant, of_case, resolve
from testbed.suites.suite import Case, find_suite

SUITE, PROFILE = "kip73", "ci"
_ONCE_MORE = re.compile(r", [0-9]+$")
MOST = FEWEST_AFTER
"""The runs of a scenario in a night whose first run is in doubt: with so many, a large change is reported at once."""


@dataclass(frozen=True, slots=True)
class NightRuns:
    """The runs of a night, and the ids of its scenarios: to run, and run."""

    result: CampaignResult
    scenarios: frozenset[str]
    ran: frozenset[str]
    problems: tuple[str, ...]
    """The cases without a run that was needed, and the reasons; none of a case that a user muted."""


def variants(cases: Sequence[Case], profile: str, kafka: str | None, times: int = 1) -> list[Variant]:
    """Return a variant for each run of the night: every case, then the repeats. Raise `UsageError` for a wrong case."""
    once = [of_case(case, profile, kafka) for case in cases]
    again = [replace(variant, label=f"{variant.label}, {number}") for number in range(2, times + 1) for variant in once]
    return [*once, *again]


def needless_slots(
    known: Mapping[str, str], earlier: EarlierValues, environment: Callable[[str], str]
) -> NeedlessSlots:
    """Return a function that finds the needless slots of a night.

    A case is run again only when its first run is in doubt: it did not pass, or a value is far from the `earlier` ones.
    `known` is the scenario of each variant. `environment` returns that of a run, by its id: a store may have the runs
    of several machines.
    """

    def needless(campaign: Campaign, slot: Slot, state: CampaignState) -> bool:
        case = _ONCE_MORE.sub("", slot.variant)
        first = next((each.index for each in campaign.slots if each.variant == case), None)
        if case == slot.variant or first is None:
            return False
        ran = state.ran.get(first)
        return ran is None or not _doubtful(ran.done, known[case], earlier, environment)

    return needless


def _doubtful(done: RunDone, scenario: str, earlier: EarlierValues, environment: Callable[[str], str]) -> bool:
    if done.verdict != "pass":
        return True
    if not any(each == scenario for each, _environment, _metric in earlier):
        return False
    here = environment(done.run_id)
    standing = {name: find_measure(name).standing(value) for name, value in done.values.items()}
    return any(in_doubt(value, earlier.get((scenario, here, name), ())) for name, value in standing.items())


def scenario_of(wanted: Resolved) -> str:
    """Return the scenario's id under which a store's nights have the runs of a variant."""
    return scenario_id(wanted.experiment.name, _parameters(wanted))


def _parameters(wanted: Resolved) -> Mapping[str, Any]:
    return {**wanted.settings, "topology": wanted.topology.name}


@dataclass(frozen=True, slots=True)
class NightRequest:
    """The settings of a night that the user names; None means the default."""

    suite: str | None = None
    only: tuple[str, ...] = ()
    """The names of the cases to run; empty for all."""
    profile: str | None = None
    kafka: str | None = None
    repeats: int | None = None
    seed: int | None = None
    store: str | None = None


def new_night(wanted: NightRequest) -> Campaign:
    """Return a night's campaign: `repeats` runs, or see `needless_slots`. Raise `UsageError` for a wrong request."""
    profile, kafka, seed = wanted.profile or PROFILE, wanted.kafka, 1 if wanted.seed is None else wanted.seed
    cases = find_suite(wanted.suite or SUITE).cases(profile, wanted.only)
    times, repeats = (MOST, 1) if wanted.repeats is None else (1, wanted.repeats)
    return new_campaign(NIGHTLY, variants(cases, profile, kafka, times), repeats, seed, store=wanted.store)


def not_run(wanted: NightRequest) -> dict[str, str]:
    """Return the cases of the night's suite whose software was not supplied, each with the reason."""
    return find_suite(wanted.suite or SUITE).not_run(wanted.profile or PROFILE, wanted.only)


def require_same(campaign_id: str, wanted: NightRequest) -> None:
    """Raise `UsageError` when what the user names differs from the interrupted night: a resume would not run it."""
    campaign = stored(campaign_id)
    if campaign.command != NIGHTLY:
        return  # `run_campaign` refuses a campaign of another command
    first = campaign.variants[0]
    kafka = first.kafka if wanted.kafka is None else lasting_kafka(first.kafka)  # earlier versions stored a path
    own = NightRequest(None, (), first.profile, kafka, campaign.repeats, campaign.seed, campaign.store)
    asked = replace(wanted, kafka=lasting_kafka(wanted.kafka), store=wanted.store and Store.open(wanted.store).location)
    said = [
        f"{name}: {getattr(own, name)} there, {getattr(asked, name)} here"
        for name in ("profile", "kafka", "repeats", "seed", "store")
        if getattr(asked, name) not in (None, getattr(own, name))
    ]
    there = {_ONCE_MORE.sub("", variant.label) for variant in campaign.variants}
    here = set(wanted.only)
    if wanted.suite is not None:
        here = {case.name for case in find_suite(wanted.suite).cases(wanted.profile or first.profile, wanted.only)}
    if here and here != there:
        said.append(f"scenarios: {', '.join(sorted(there))} there, {', '.join(sorted(here))} here")
    if said:
        raise UsageError(
            f"night {campaign_id} began with other options; leave these out, or begin a new night:\n  "
            + "\n  ".join(said)
        )


def run_night(asked: Campaign | None, campaign_id: str | None, budget_s: float | None, progress: Progress) -> NightRuns:
    """Make the runs of a new night, or resume one, and return them."""
    # The scenarios are resolved first, because a named build or file may be gone when the night is over.
    planned = asked if campaign_id is None else stored(campaign_id)
    assert planned is not None
    nightly = planned.command == NIGHTLY  # `run_campaign` refuses a campaign of another command
    resolved = {each.label: resolve(each) for each in planned.variants} if nightly else {}
    known = {label: scenario_of(wanted) for label, wanted in resolved.items()}
    store = Store.open(planned.store)
    users = policies.load(store)  # damaged ones are an error now, and not after hours
    before = earlier_values(store, set(known.values()), planned.begun)

    @cache
    def environment(run_id: str) -> str:
        return environment_id(store.manifest(run_id))

    needless = needless_slots(known, before, environment)
    result = run_campaign(asked, campaign_id, NIGHTLY, budget_s, progress, needless=needless)
    campaign, state = result.campaign, result.state
    ran = frozenset(known[slot.variant] for slot in campaign.slots if slot.index in state.ran)
    now = datetime.now(UTC)
    muted = {
        label
        for label, wanted in resolved.items()
        if users.mute_of_scenario(known[label], wanted.experiment.name, _parameters(wanted), now)
    }
    skipped = frozenset(
        slot.index for slot in campaign.slots if slot.variant in muted or needless(campaign, slot, state)
    )
    problems = not_made(campaign, state, result.why_ended, skipped)
    return NightRuns(result, frozenset(known.values()), ran, problems)
