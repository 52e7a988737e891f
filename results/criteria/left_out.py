"""What is not judged of a run although it is of others of its experiment: told beside the verdict, with the reason."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from results.contract.manifest import Manifest
from results.criteria.registry import rules_for


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One criterion by its name, and why nothing can be said by it."""

    name: str
    why: str


@runtime_checkable
class LeavesOut(Protocol):
    """A judge that knows what it leaves out."""

    def left_out(self, manifest: Manifest) -> tuple[LeftOut, ...]:
        """What it does not judge of this run, and why."""


def left_out(manifest: Manifest) -> tuple[LeftOut, ...]:
    """What is not judged of a run, and why. Raises `UnknownExperimentError`."""
    judge = rules_for(manifest.experiment).judge
    return judge.left_out(manifest) if isinstance(judge, LeavesOut) else ()


def left_out_lines(found: tuple[LeftOut, ...]) -> list[str]:
    """A line for each, for people."""
    return [f"{'NOT JUDGED':<12}  {each.name}: {each.why}" for each in found]
