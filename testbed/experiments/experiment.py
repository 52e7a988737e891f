"""The definition of an experiment, the lookup of experiments, and the parser of their settings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from results.contract.manifest import Facts, IncidentRecord, Move, NicMeasurement, Relocation, StepsRecord
from testbed.catalogue import discovered_all
from testbed.errors import UsageError
from testbed.kafka.capabilities import Capability, of_software, require
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed
from testbed.suggestions import did_you_mean, existing
from testbed.topology.model import Topology

Value = str | int | float
Settings = Mapping[str, Value]
Hosts = Sequence[str]
"""The brokers' hosts in the topology's order: A, B, C."""
PROFILES = ("smoke", "ci", "release")
NONE = "none"
"""The value of a parameter that leaves something out."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One `--set NAME=VALUE`. `parse` raises ValueError with the allowed values."""

    name: str
    default: str
    parse: Callable[[str], Value]
    help: str


@dataclass(frozen=True, slots=True)
class Context:
    """The environment of one run of an experiment."""

    testbed: Testbed
    settings: Settings
    recorder: Recorder
    progress: Callable[[str], None]
    run_id: str


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """The result of an experiment, in addition to its samples and events."""

    nics: tuple[NicMeasurement, ...] = ()
    move: Move | None = None
    facts: Facts = field(default_factory=Facts)
    steps: StepsRecord | None = None
    relocation: Relocation | None = None
    incident: IncidentRecord | None = None


@dataclass(frozen=True, slots=True)
class SuiteScenario:
    """One scenario of a suite: the experiment with fixed settings, in some profiles."""

    suite: str
    profiles: Sequence[str]
    name: str
    order: int
    """Position in the suite: lower numbers run first, equal numbers in the order of declaration."""
    settings: tuple[str, ...] = ()
    """`NAME=VALUE` each; they replace the defaults of the experiment's profile."""
    topology: str | None = None
    """A ready topology, instead of the experiment's own."""
    limit_s: float | None = None
    """Seconds after which the scenario is stopped and fails; None for the limit of the suite in the profile."""

    def over(self, parameter: str, *values: str) -> "tuple[SuiteScenario, ...]":
        """Return one scenario for each value of a parameter: `NAME-VALUE`, with the value as its first setting."""
        return tuple(
            replace(self, name=f"{self.name}-{value}", settings=(f"{parameter}={value}", *self.settings))
            for value in values
        )


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment: its parameters, its steps, and the names of the criteria that judge a run."""

    name: str
    summary: str
    topology: str
    """The ready topology of a run without another topology; `ready_topology` has that of the settings."""
    parameters: Sequence[Parameter]
    profiles: Mapping[str, Mapping[str, str]]
    """Profile → other defaults."""
    overlay: Callable[[Settings], Mapping[str, str]]
    """Broker properties that the settings require. Raise `UsageError` for contradictory settings."""
    run: Callable[[Context], ExperimentResult]
    check: Callable[[Topology, Settings], None] = lambda _topology, _settings: None
    """Raise `UsageError` when the topology cannot host the experiment with these settings."""
    check_kafka: Callable[[Settings, Topology, Testbed | None], None] = lambda _settings, _topology, _testbed: None
    """Raise `UsageError` when the Kafkas of the hosts cannot run it: those of a testbed that is up, or will be made."""
    needs: frozenset[Capability] = frozenset()
    """Capabilities that the experiment requires of the software."""
    suites: Sequence[SuiteScenario] = ()
    """Its scenarios in suites."""
    criteria: Sequence[str] = ()
    """The names of its criteria, in addition to those of every run: files of `results/criteria/catalogue`."""
    replicas: Callable[[Settings], int] = lambda _settings: 0
    """The most replicas of any one broker during a run with these settings; its heap follows from them."""
    stored: Callable[[Settings], int] = lambda _settings: 0
    """The bytes that the run writes to the disks of brokers and stores, with the copies of its move."""
    automq_topology: str = ""
    """The ready topology of a run with `storage=automq`; empty when the experiment has no such storage."""

    def ready_topology(self, settings: Settings) -> str:
        """Return the ready topology of a run with these settings and without another topology."""
        return self.automq_topology if settings.get("storage") == "automq" else self.topology

    def fits(self, topology: Topology, settings: Settings) -> None:
        """Raise `UsageError` when a topology cannot host the experiment, `LacksCapability` when its software cannot."""
        who = "Apache Kafka" if topology.automq is None else "AutoMQ"
        require(self.needs, of_software(topology), self.name, f"{who}, the software of {topology.name}")
        self.check(topology, settings)


def experiments() -> dict[str, Experiment]:
    """Return every experiment by name. A module of the catalogue has one, EXPERIMENT, or several, EXPERIMENTS."""
    return {each.name: each for each in discovered_all("testbed.experiments.catalogue", "EXPERIMENT", "EXPERIMENTS")}


def find_experiment(name: str) -> Experiment:
    """Return the experiment of this name. Raise `UsageError` with the existing names when there is none."""
    found = experiments()
    return found[existing("experiment", name, sorted(found))]


def read_settings(experiment: Experiment, profile: str, given: Sequence[str]) -> dict[str, Value]:
    """Return all parameters' values: the defaults, replaced by the profile's, replaced by `given` (`NAME=VALUE` each).

    Raise `UsageError` with every mistake at once.
    """
    known = {parameter.name: parameter for parameter in experiment.parameters}
    texts = {parameter.name: parameter.default for parameter in experiment.parameters}
    texts |= experiment.profiles.get(profile, {})
    problems = []
    for word in given:
        name, equals, text = word.partition("=")
        if not equals:
            problems.append(f"--set {word}: expected NAME=VALUE")
        elif name not in known:
            allowed = f"parameter {name!r}, only {', '.join(known)}{did_you_mean(name, known)}"
            problems.append(f"--set {word}: {experiment.name} has no {allowed if known else 'parameters'}")
        else:
            texts[name] = text
    values: dict[str, Value] = {}
    for name, text in texts.items():
        try:
            values[name] = known[name].parse(text)
        except ValueError as error:
            problems.append(f"--set {name}={text}: {error}{_several(known[name], text)}")
    if problems:
        raise UsageError("\n".join(problems))
    return values


def require_once(given: Iterable[str]) -> None:
    """Raise `UsageError` when `given` (`NAME=VALUE` each) sets a parameter twice: one of the values would not count."""
    values: dict[str, str] = {}
    problems = []
    for word in given:
        name, equals, text = word.partition("=")
        if equals and name in values:
            problems.append(f"{name} is set twice: {values[name]} and {text}; leave one out")
        elif equals:
            values[name] = text
    if problems:
        raise UsageError("\n".join(problems))


def _several(parameter: Parameter, text: str) -> str:
    """Return what a run with several values needs, when a text is a list of values; empty when it is none."""
    if "," not in text or parameter.name == "distribution":  # one distribution has commas itself
        return ""
    for part in text.split(","):
        with suppress(ValueError):
            parameter.parse(part.strip())
            return "; a run has one value, `testbed sweep` makes runs with each of several"
    return ""


def number(settings: Settings, name: str) -> float:
    """Return a setting that is a number. Raise `TypeError` for text."""
    value = settings[name]
    if isinstance(value, str):
        raise TypeError(f"setting {name} is text: {value!r}")
    return value


def one_of(*allowed: str) -> Callable[[str], Value]:
    """Return a parser for a parameter with few values."""

    def parse(text: str) -> Value:
        if text not in allowed:
            raise ValueError(f"allowed are {', '.join(allowed)}{did_you_mean(text, allowed)}")
        return text

    return parse


def whole(lowest: int, highest: int) -> Callable[[str], Value]:
    """Return a parser for a whole number within bounds."""

    def parse(text: str) -> Value:
        # Python refuses to convert thousands of digits, and `isdecimal` accepts the digits of every script.
        if not (text.isascii() and text.isdecimal() and len(text) < 20) or not lowest <= int(text) <= highest:
            raise ValueError(f"expected a whole number from {lowest} to {highest}")
        return int(text)

    return parse


def above_zero(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """Return a parser for a quantity that is above zero."""

    def parsed(text: str) -> Value:
        value = parse(text)
        if not value:
            raise ValueError("expected more than 0")
        return value

    return parsed


def or_none(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """Return a parser that also takes `none`, and returns 0 for it."""

    def parsed(text: str) -> Value:
        if text == NONE:
            return 0
        try:
            return parse(text)
        except ValueError as error:
            raise ValueError(f"{error}, or {NONE}") from None

    return parsed
