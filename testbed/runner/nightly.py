"""A night: every case of a suite is run once, or more often where the variance requires it; then the store is judged.

A night is a campaign with the usual journal, canaries, budget and resume. Its variants are scenarios, and
`results/nights` compares each of them with its own past.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from results.contract.store import Store
from results.nights import state as states
from results.nights.state import SeriesState
from results.nights.values import scenario_id
from results.series.decision import ChangeRule
from testbed.errors import UsageError
from testbed.runner.campaign import NIGHTLY, Campaign, lasting, new_campaign
from testbed.runner.comparison import not_made
from testbed.runner.journal import CampaignState, campaign_state, opened
from testbed.runner.run import Progress, begin, resume
from testbed.runner.variant import Resolved, Variant, of_case, resolve
from testbed.suites.suite import Case, find_suite

SUITE, PROFILE = "kip73", "ci"
_ONCE_MORE = re.compile(r", [0-9]+$")
MORE = 3
"""The runs of a scenario in a night, if one run would miss a change of `ChangeRule.noisy`."""


@dataclass(frozen=True, slots=True)
class NightRuns:
    """The runs of a night. `problems` names the missing runs; `complete` is True when nothing is left to resume."""

    campaign: Campaign
    state: CampaignState
    why_ended: str
    complete: bool
    scenarios: frozenset[str] = frozenset()
    """The ids of the scenarios to run."""
    ran: frozenset[str] = frozenset()
    """The ids of the scenarios that were run."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the cases without a run, and the reasons."""
        return not_made(self.campaign, self.state, self.why_ended)


def variants(
    cases: Sequence[Case], profile: str, kafka: str | None, repeats: Callable[[Resolved], int]
) -> list[Variant]:
    """Return a variant for each run of the night: first every case in order, then the repeats.

    Raise `UsageError` when a case cannot be run.
    """
    once = [of_case(case, profile, kafka) for case in cases]
    wanted = {variant.label: repeats(resolve(variant)) for variant in once}
    most = max(wanted.values(), default=1)
    again = [
        replace(variant, label=f"{variant.label}, {number}")
        for number in range(2, most + 1)
        for variant in once
        if wanted[variant.label] >= number
    ]
    return [*once, *again]


def needed(
    known: Iterable[SeriesState], more: int = MORE, noisy: float = ChangeRule().noisy
) -> Callable[[Resolved], int]:
    """Return a function that gives a scenario's number of runs.

    It is `more` if one of the scenario's series would miss a change of `noisy`, else 1.
    """
    wild = {each.scenario for each in known if (each.said.detectable or 0.0) > noisy}

    return lambda wanted: more if scenario_of(wanted) in wild else 1


def scenario_of(wanted: Resolved) -> str:
    """Return the scenario's id under which a store's nights have the runs of a variant."""
    return scenario_id(wanted.experiment.name, {**wanted.settings, "topology": wanted.topology.name})


def _by_label(campaign: Campaign) -> dict[str, str]:
    """Return the scenario of each variant of a night."""
    return {variant.label: scenario_of(resolve(variant)) for variant in campaign.variants}


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
    """Return the campaign of a night.

    Each case is run `repeats` times, in rounds; without `repeats`, as often as the variance requires. Raise
    `UsageError` when it cannot be run.
    """
    profile, kafka, seed = wanted.profile or PROFILE, wanted.kafka, 1 if wanted.seed is None else wanted.seed
    cases = find_suite(wanted.suite or SUITE).cases(profile, wanted.only)
    planned = variants(cases, profile, kafka, lambda _wanted: 1)
    if wanted.repeats is not None:
        return new_campaign(NIGHTLY, planned, wanted.repeats, seed, store=wanted.store)
    asked = new_campaign(NIGHTLY, planned, 1, seed, store=wanted.store)
    repeated = variants(cases, profile, kafka, needed(states.load(Store.open(asked.store)).values()))
    return asked if len(repeated) == len(planned) else new_campaign(NIGHTLY, repeated, 1, seed, store=wanted.store)


def require_same(campaign_id: str, wanted: NightRequest) -> None:
    """Raise `UsageError` when the user's settings differ from those of the interrupted night.

    A resume runs the old settings, so the answer would not fit the request.
    """
    with opened(campaign_id) as journal:
        campaign = journal.campaign
    if campaign.door != NIGHTLY:
        return  # `resume` refuses a campaign of another command
    first = campaign.variants[0]
    own = NightRequest(None, (), first.profile, first.kafka, campaign.repeats, campaign.seed, campaign.store)
    asked = replace(wanted, kafka=lasting(wanted.kafka), store=wanted.store and Store.open(wanted.store).location)
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
        said.append(f"cases: {', '.join(sorted(there))} there, {', '.join(sorted(here))} here")
    if said:
        raise UsageError(
            f"night {campaign_id} is another one; leave out what differs, or begin a new one:\n  " + "\n  ".join(said)
        )


def run_night(asked: Campaign | None, campaign_id: str | None, budget_s: float | None, progress: Progress) -> NightRuns:
    """Make the runs of a new night, or resume one, and return them."""
    # The scenarios are resolved first, because a named build or file may be gone when the night is over.
    if campaign_id is not None:
        with opened(campaign_id) as journal:
            known = _by_label(journal.campaign)
        result = resume(campaign_id, None, NIGHTLY, budget_s, progress, stop_early=False)
    else:
        assert asked is not None
        known = _by_label(asked)
        result = begin(asked, budget_s, progress, stop_early=False)
    with opened(result.campaign.id) as journal:
        so = campaign_state(journal.entries)
    ran = frozenset(known[slot.variant] for slot in result.campaign.slots if slot.index in so.ran)
    return NightRuns(result.campaign, so, result.why_ended, result.complete, frozenset(known.values()), ran)
