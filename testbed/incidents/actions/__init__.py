"""What can be done in a timeline: one file for each kind, found because it is there."""

from collections.abc import Mapping
from functools import cache
from typing import Protocol

from testbed.incidents.operating import Operator
from testbed.incidents.phrases import Phrase, found_in, read


class Action(Phrase, Protocol):
    """A frozen dataclass whose fields are what the sentence says."""

    def perform(self, operator: Operator) -> None:
        """Do it; raises `TestbedError` when it cannot be done."""


@cache
def kinds() -> Mapping[str, type[Action]]:
    """Every kind of action by name; a fault, the form without a word of its own, comes last."""
    found = found_in(__name__)
    found["fault"] = found.pop("fault")
    return found


def parse_action(text: object) -> Action:
    """The action that a sentence says. Raises `PhraseError`."""
    known = kinds()
    first = text.split(" ", maxsplit=1)[0] if isinstance(text, str) else ""
    if any(first == kind.form.split(" ", maxsplit=1)[0] for kind in known.values()):
        # Begun as an action: then it is no fault, and the answer is how that action is written.
        known = {name: kind for name, kind in known.items() if name != "fault"}
    return read(text, known, "an action")
