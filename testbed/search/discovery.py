"""A found incident: what it breaks, how often, and its file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from results.compare.effect import binomial_interval
from results.contract import durable
from testbed.incidents.read import loads
from testbed.search.database import SearchSettings
from testbed.search.draft import Draft, DrawnStep, document, step_names
from testbed.topology.find import ready
from testbed.yaml_document import FormError


@dataclass(frozen=True, slots=True)
class Discovery:
    """An incident that breaks an invariant, as small as it became.

    `tries` is how many incidents were drawn until it was found, `from_steps` how many steps it had then, and `replays`
    how many replays made it smaller. Of `of` last replays, each on a new testbed, `found` failed. It is `minimal` when
    the search had the time to try every simplification and to confirm the last one.
    """

    invariant: str
    why: str
    draft: Draft
    tries: int
    from_steps: int
    replays: int
    found: int
    of: int
    minimal: bool
    found_s: float
    shrunk_s: float
    file: Path | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the probability that one replay fails."""
        return binomial_interval(self.found, self.of)

    def probability(self) -> str:
        """Return how often it failed, in words: `3 of 3 replays (95 % interval 29 % to 100 %)`."""
        low, high = self.interval
        return f"{self.found} of {self.of} replays (95 % interval {low * 100:.0f} % to {high * 100:.0f} %)"


def incident_text(found: Discovery, settings: SearchSettings, name: str, brokers: int) -> str:
    """Return the text of a found incident's file, which `testbed replay` accepts."""
    broken: dict[str, Any] = {"summary": " ".join(found.why.split()), "expected_failures": [found.invariant]}
    if settings.defects:
        broken["defects"] = list(settings.defects)
    # Without it the fixed variant would also run another release, which may be the reason why it passes.
    release = {"kafka": settings.kafka} if settings.kafka else {}
    broken |= release
    draft = found.draft
    if settings.topology not in ready():
        # The file may be replayed from any folder.
        draft = replace(draft, topology=str(Path(settings.topology).absolute()))
    summary = f"A search found it: {found.invariant} fails in {found.probability()}."

    def written(fixed: Mapping[str, Any]) -> str:
        made = document(draft, brokers, name=name, summary=summary, broken=broken, fixed={**fixed, **release})
        return yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=120)

    head = [
        f"# Found by `testbed search` with seed {settings.seed}, try {found.tries}.",
        f"# {found.from_steps} steps became {len(draft.steps)} in {found.replays} replays"
        + ("." if found.minimal else "; the budget ended before it was minimal and confirmed."),
        f"# Probability of a failure: {found.probability()}.",
    ]
    return "\n".join([*head, written(_fixed(draft.steps, settings, written))])


def write(found: Discovery, settings: SearchSettings, folder: Path, number: int, brokers: int) -> Path:
    """Write the file of a found incident, and return its path."""
    name = f"found-{number}-{found.invariant}"
    path = folder / f"{name}.yaml"
    durable.write(path, incident_text(found, settings, name, brokers))
    return path


def _fixed(steps: Sequence[DrawnStep], settings: SearchSettings, written: Any) -> dict[str, Any]:
    """Return the fixed variant: without the defects, or without the last step that can be left out."""
    if settings.defects:
        return {"summary": "The same on brokers without the defect."}
    for number in range(len(steps), 0, -1):
        step = steps[number - 1]
        fixed = {"summary": f"Without {step.kind}.", "drop": step_names(number, step)}
        try:
            loads(written(fixed), "found.yaml")
        except FormError:
            continue
        return fixed
    return {"summary": "No remedy is known."}
