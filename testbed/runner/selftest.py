"""The self-test: every defect is played on real brokers, and healthy brokers as well, as one campaign."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from results.compare.scenario_judgement import CERTAIN
from results.contract.defect import DefectRecord
from results.contract.store import Store
from results.series.calculator import FEWEST_RUNS_TO_JUDGE
from testbed.defects.defect import Exposure
from testbed.defects.parse import defects, find_defect, parse_defect
from testbed.errors import UsageError
from testbed.experiments.experiment_run import Progress
from testbed.experiments.spark import spark_session
from testbed.paths import data_dir
from testbed.runner.campaign import SELFTEST, Campaign, VariantGroup, default_measures, new_campaign
from testbed.runner.campaign_run import run_campaign
from testbed.runner.detection import HISTORY, DefectDetection, detections, qualifies, runs_suite, with_causes
from testbed.runner.journal import CampaignState
from testbed.runner.qualification import causes_in
from testbed.runner.replayed_nights import night_changes
from testbed.runner.schedule import Slot
from testbed.runner.variant import Variant, of_case
from testbed.runner.version_results import needless_slot
from testbed.suites.suite import Case, find_suite

RUN, BRIEF, COMPARE, NIGHTS, QUALIFY = "run", "brief", "compare", "nightly", "qualify"
"""How a defect is looked for: by one run, by the suite brief, by pairs of a healthy and a broken variant, by nights of
the suite brief after a history of healthy ones, or as a scenario of a qualification."""
USUAL_REPEATS = {COMPARE: 8, NIGHTS: 3, QUALIFY: CERTAIN}
LIMIT_S = 600.0
"""Seconds after which a run is stopped: a defect may keep it from its end."""


@dataclass(frozen=True, slots=True)
class SelftestRequest:
    """The settings of a self-test; None means the default."""

    defects: tuple[str, ...] = ()
    """Defects as text (`NAME[@HOST,…][:key=value,…]`, several at once with `+` between them); empty for all."""
    by: str = RUN
    repeats: int | None = None
    """Plays of each defect; of a comparison, pairs; of nights, the broken ones."""
    healthy: int | None = None
    """Plays of healthy brokers, counted as those of each defect. None: as many as of each defect."""
    history: int | None = None
    """Nights of healthy brokers before the first broken one. None: as many runs as a series needs to be judged."""
    cases: tuple[str, ...] = ()
    """The cases of the suite brief to run; empty for all."""
    kafka: str | None = None
    seed: int = 1
    store: str | None = None


@dataclass(frozen=True, slots=True)
class SelftestResult:
    """A self-test's table so far. `complete` when `--resume` would make no run."""

    campaign: Campaign
    detections: tuple[DefectDetection, ...]
    why_ended: str
    complete: bool
    kafka: tuple[str, ...] = ()
    """The versions of Kafka that ran."""

    @property
    def exit_code(self) -> int:
        """Return 0 when every defect was found and no healthy broker gave an alarm, 1 when not, 2 when not known."""
        broken = [each for each in self.detections if not each.healthy]
        if any(each.missed for each in broken) or self.alarms:
            return 1
        return 0 if self.complete and all(each.result == "found" for each in broken) else 2

    @property
    def alarms(self) -> int:
        """Return how many plays of healthy brokers gave an alarm."""
        return sum(each.found for each in self.detections if each.healthy)


def default_store() -> str:
    """Return the location of a self-test's runs without `--store`: apart from all other runs."""
    return str(data_dir() / "selftest")


def texts(names: Sequence[str]) -> tuple[str, ...]:
    """Return the plays: the defects named, else all of the catalogue; a name alone means each of its sizes."""
    found: list[str] = []
    for name in names or defects():
        alone = not set("@:+") & set(name)
        sizes = find_defect(name).sizes if alone else ()
        found += [f"{name}:{size}" if size else name for size in sizes] if alone else [name]
    return tuple(dict.fromkeys(found))


class _Plan:
    """The variants and groups of a self-test, in the order of their runs."""

    def __init__(self, asked: SelftestRequest) -> None:
        self.asked = asked
        self.repeats = USUAL_REPEATS.get(asked.by, 1) if asked.repeats is None else asked.repeats
        self.healthy = self.repeats if asked.healthy is None else asked.healthy
        self.variants: dict[str, Variant] = {}
        self.groups: list[VariantGroup] = []

    def add(self, name: str, members: Sequence[Variant], repeats: int, *, paired: bool = False) -> None:
        if not repeats:
            return
        self.variants.update({each.label: each for each in members})
        group = VariantGroup.against_first(name, members, repeats)
        self.groups.append(group if paired else replace(group, pairs=()))

    def runs(self, broken: Sequence[tuple[str, Exposure]]) -> None:
        """Add a run of each defect, then one of healthy brokers for each experiment."""
        for text, shown in broken:
            self.add(label(text), [_of(label(text), shown, self.asked, together(text))], self.repeats)
        for name, shown in _healthy(broken).items():
            self.add(name, [_of(name, shown, self.asked)], self.healthy)

    def pairs(self, broken: Sequence[tuple[str, Exposure]]) -> None:
        """Add blocks of a healthy run and a broken run of each defect; compare each broken run with the healthy one.

        Defects of one experiment share its healthy runs. Then add pairs of which both runs are healthy.
        """
        for name, shown in _healthy(broken).items():
            wrong = [_of(label(text), shown, self.asked, together(text)) for text, own in broken if own == shown]
            self.add(name, [_of(name, shown, self.asked), *wrong], self.repeats, paired=True)
        self.again(broken, paired=True)

    def versions(self, broken: Sequence[tuple[str, Exposure]]) -> None:
        """Add a healthy and a broken version for each defect, then two healthy ones for each experiment."""
        names = {shown: name for name, shown in _healthy(broken).items()}
        for text, shown in broken:
            pair = [_of(names[shown], shown, self.asked), _of(label(text), shown, self.asked, together(text))]
            self.add(label(text), pair, self.repeats)
        self.again(broken)

    def again(self, broken: Sequence[tuple[str, Exposure]], *, paired: bool = False) -> None:
        """Add two variants that are both healthy for each experiment."""
        for name, shown in _healthy(broken).items():
            twice = f"{name}, again"
            self.add(twice, [_of(each, shown, self.asked) for each in (name, twice)], self.healthy, paired=paired)

    def suites(self, broken: Sequence[tuple[str, Exposure]], history: int) -> None:
        """Add the cases of suite brief: a history of healthy ones, each defect, and healthy ones again."""
        cases = find_suite(BRIEF).cases("ci", self.asked.cases)
        well = [_case("healthy", case, self.asked.kafka) for case in cases]
        self.add(HISTORY, well, history)
        for text, _shown in broken:
            name = label(text)
            self.add(name, [_case(name, case, self.asked.kafka, together(text)) for case in cases], self.repeats)
        self.add("healthy", well, self.healthy)


def plan(asked: SelftestRequest) -> tuple[list[Variant], list[VariantGroup]]:
    """Return the variants and groups of a self-test. Raise `UsageError` when a defect or a number is wrong."""
    made = _Plan(asked)
    if made.repeats < 1 or made.healthy < 0 or (asked.history is not None and asked.history < 1):
        raise UsageError("--repeats and --history have to be 1 or more, and --healthy 0 or more")
    if asked.history is not None and asked.by != NIGHTS:
        raise UsageError(f"--history needs --by {NIGHTS}; with --by {asked.by}, leave it out")
    if asked.cases and asked.by not in (BRIEF, NIGHTS):
        raise UsageError(f"--scenario needs --by {BRIEF} or {NIGHTS}; with --by {asked.by}, leave it out")
    requests = {text: [parse_defect(each) for each in together(text)] for text in texts(asked.defects)}
    broken = [(text, first.defect.shown_by) for text, (first, *_others) in requests.items()]
    if asked.by == RUN:
        made.runs(broken)
    elif asked.by == COMPARE:
        made.pairs(broken)
    elif asked.by == QUALIFY:
        made.versions(broken)
    else:
        made.suites(broken, (asked.history or FEWEST_RUNS_TO_JUDGE) if asked.by == NIGHTS else 0)
    return list(made.variants.values()), made.groups


def _healthy(broken: Sequence[tuple[str, Exposure]]) -> dict[str, Exposure]:
    """Return label → experiment of the healthy brokers that are played with these defects."""
    return {f"healthy {_words(shown)}": shown for _text, shown in broken}


def together(text: str) -> tuple[str, ...]:
    """Return the defects of one play: those between `+`. The first one's catalogue entry names the run."""
    return tuple(text.split("+"))


def label(text: str) -> str:
    """Return a play's text in the characters of a label."""
    return text.replace("+", " + ").replace("@", " on ").replace(":", " ")


def _words(shown: Exposure) -> str:
    """Return the name of an experiment with its settings, short enough for a label."""
    return " ".join([shown.experiment, *(word.partition("=")[2].replace("/s", "") for word in shown.settings)])[:64]


def _of(name: str, shown: Exposure, asked: SelftestRequest, broken: tuple[str, ...] = ()) -> Variant:
    kafka, topology = asked.kafka, shown.topology
    return Variant(name, shown.experiment, shown.profile, shown.settings, kafka, topology, LIMIT_S, broken)


def _case(name: str, case: Case, kafka: str | None, broken: tuple[str, ...] = ()) -> Variant:
    return replace(of_case(case, "ci", kafka), label=f"{name}, {case.name}", defects=broken)


def new_selftest(asked: SelftestRequest) -> Campaign:
    """Return the campaign of a self-test. Raise `UsageError` when it cannot be run."""
    variants, groups = plan(asked)
    measures = default_measures("compare", variants[:1])
    store = asked.store or default_store()
    return new_campaign(SELFTEST, variants, 1, asked.seed, store=store, measure_names=measures, groups=groups)


def way_of(campaign: Campaign) -> str:
    """Return how a self-test's campaign looks for defects."""
    if any(group.pairs for group in campaign.variant_groups):
        return COMPARE
    if any(group.name == HISTORY for group in campaign.variant_groups):
        return NIGHTS
    if any(qualifies(group) for group in campaign.variant_groups):
        return QUALIFY
    return BRIEF if any(runs_suite(group) for group in campaign.variant_groups) else RUN


def needless(campaign: Campaign, slot: Slot, state: CampaignState) -> bool:
    """Return whether a slot is needless: of a qualification, the runs after a first one that decides."""
    return way_of(campaign) == QUALIFY and needless_slot(campaign, slot, state, all_pairs=True)


def selftest(
    asked: SelftestRequest | None, campaign_id: str | None, budget_s: float | None, progress: Progress
) -> SelftestResult:
    """Play a self-test's defects, or go on; return the table. Raise `UsageError` before that, or `TestbedError`."""
    new = None if asked is None else new_selftest(asked)
    ended = run_campaign(new, campaign_id, SELFTEST, budget_s, progress, needless=needless)
    state, store = ended.state, Store.open(ended.campaign.store)

    def defects_of(run_id: str) -> tuple[DefectRecord, ...]:
        return store.manifest(run_id).defects

    def causes_of(run_id: str) -> list[str]:
        return [f"{each.name}: {each.why}" for each in causes_in(store, run_id)]

    if way_of(ended.campaign) == NIGHTS:
        with spark_session() as spark:
            found = detections(ended.campaign, state, defects_of, partial(night_changes, spark, store))
    else:
        found = detections(ended.campaign, state, defects_of)
    found = [with_causes(each, causes_of) for each in found]
    made = [ran.done.run_id for ran in state.ran.values()]
    kafka = sorted({version for run_id in made for version in store.manifest(run_id).versions.kafka.values()})
    return SelftestResult(ended.campaign, tuple(found), ended.why_ended, ended.complete, tuple(kafka))
