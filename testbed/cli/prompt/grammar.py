"""The grammar of the prompt: a command's usage is its grammar. Pure.

`move TOPICS [from BROKER] to BROKERS [throttle RATE]` has keywords in lower case, kinds of words in capitals, and
optional groups in brackets. A group may come anywhere after its place. `COMMANDLINE…` is the rest of the line as typed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from testbed.cli.prompt.vocabulary import KINDS, Vocabulary
from testbed.errors import UsageError
from testbed.suggestions import choices, did_you_mean

_TOKEN = re.compile(r"\[([^]]*)\]|(\S+)")
_REST = "…"
Values = Mapping[str, Any]
Suggest = Callable[[Sequence[str], Vocabulary], Sequence[str]]


@dataclass(frozen=True)
class PromptCommand:
    """A command of the prompt. `run` takes the session and the values, and returns an exit code or None for 0.

    A value's key is the keyword before it, otherwise its kind in lower case. `shown` replaces the usage in help.
    `rest` completes the last word of the rest of a line. A command without a group is another form of a listed one.
    """

    usage: str
    summary: str
    run: Callable[..., int | None]
    detail: str = ""
    shown: str = ""
    group: str = ""
    rest: Suggest | None = field(default=None, compare=False)
    applies: Callable[[str, Vocabulary], bool] = field(default=lambda _subject, _names: True, compare=False)
    """Whether a host or a rack has the command, for a usage that begins with SUBJECT."""

    @cached_property
    def groups(self) -> tuple["WordGroup", ...]:
        """Return the parts of the usage, in order."""
        return tuple(
            WordGroup(tuple(optional.split()), True) if optional else WordGroup((word,), False)
            for optional, word in _TOKEN.findall(self.usage)
        )

    @property
    def name(self) -> str:
        """Return the word that names the command in help."""
        return self.usage.split()[1 if self.about_subject else 0]

    @property
    def about_subject(self) -> bool:
        """Return whether the command begins with a host or a rack."""
        return self.usage.startswith("SUBJECT ")

    @property
    def text(self) -> str:
        """Return the usage for users."""
        return self.shown or re.sub(r"\|\S+", "", self.usage)


@dataclass(frozen=True, slots=True)
class WordGroup:
    """One word of a usage, or the words of an optional group: each a keyword (or several, `×|x`) or a kind."""

    words: tuple[str, ...]
    optional: bool


class Reading:
    """A command's usage while its words are read one by one, and the values of the words."""

    def __init__(self, command: PromptCommand, names: Vocabulary) -> None:
        self.command, self._names = command, names
        self._left = list(command.groups)
        self._open: list[str] = []
        self._keyword = ""
        self.values: dict[str, Any] = {}

    @property
    def at_rest(self) -> bool:
        """Return whether the rest of the line comes next."""
        return any(word.endswith(_REST) for word in self.next_words())

    def next_words(self) -> list[str]:
        """Return the keywords and kinds that may come next."""
        return self._open[:1] if self._open else [group.words[0] for group in self._candidates()]

    def missing(self) -> str:
        """Return the words that the line still needs; empty when it is whole."""
        needed = [*self._open, *(word for group in self._left if not group.optional for word in group.words)]
        return " ".join(needed)

    def take(self, text: str) -> None:
        """Read one word. Raise ValueError when it does not fit."""
        expected = self.next_words()
        keywords = [each for each in expected if not each[0].isupper()]
        found = next((each for each in keywords if text in each.split("|")), None)
        if found is not None:
            self._advance(found)
            self._keyword = found.split("|")[0]
            return
        kind = next((each for each in expected if each[0].isupper()), None)
        if kind is None:
            words = [each.split("|")[0] for each in keywords]
            allowed = f"expected {choices(words)}" if words else "the command ends before it"
            raise ValueError(f"{text!r}: {allowed}{did_you_mean(text, words)}")
        try:
            value = KINDS[kind].parse(text, self._names)
        except ValueError as error:
            near = did_you_mean(text, [each.split("|")[0] for each in keywords])
            raise ValueError(f"{error}{near}") from error
        self._advance(kind)
        self._set(kind, value)

    def take_rest(self, text: str) -> None:
        """Take the rest of the line, as the user typed it."""
        kind = next(word for word in self.next_words() if word.endswith(_REST))
        self._advance(kind)
        self._set(kind.removesuffix(_REST), text)

    def _set(self, kind: str, value: object) -> None:
        self.values[self._keyword or kind.lower()] = value
        self._keyword = ""

    def _candidates(self) -> list[WordGroup]:
        """Return the optional groups up to the next required word, and that word."""
        place = next((i for i, group in enumerate(self._left) if not group.optional), len(self._left))
        return self._left[: place + 1]

    def _advance(self, word: str) -> None:
        if self._open:
            self._open.pop(0)
            return
        group = next(each for each in self._candidates() if each.words[0] == word)
        self._left.remove(group)
        self._open = list(group.words[1:])


class Grammar:
    """All commands, by their first words."""

    def __init__(self, commands: Sequence[PromptCommand]) -> None:
        self.commands = tuple(commands)
        self._plain = {each.name: each for each in commands if not each.about_subject}
        self._about = [each for each in commands if each.about_subject]

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name that `help` knows."""
        return tuple(dict.fromkeys(each.name for each in self.commands))

    def named(self, name: str) -> list[PromptCommand]:
        """Return the commands of this name: about the cluster, and about a host or a rack."""
        return [each for each in self.commands if each.name == name]

    def parse(self, line: str, names: Vocabulary) -> Reading | None:
        """Return the command of a line, or None. Raise `UsageError` with the wrong word and the nearest one."""
        words = _words(line)
        if not words:
            return None
        reading = Reading(self._command([text for text, _ in words], names), names)
        for text, begin in words:
            if reading.at_rest:
                reading.take_rest(line[begin:].strip())
                break
            try:
                reading.take(text)
            except ValueError as error:
                raise UsageError(f"{error}\n  usage: {reading.command.text}") from error
        if missing := reading.missing():
            raise UsageError(f"{missing} is missing\n  usage: {reading.command.text}")
        return reading

    def complete(self, line: str, names: Vocabulary) -> list[str]:
        """Return the words that may stand where the line ends; each replaces the word that has begun there."""
        words = [text for text, _ in _words(line)]
        typed = words.pop() if words and not line[-1:].isspace() else ""
        found: Sequence[str]
        if not words:
            found = [*self._plain, *names.subjects]
        elif len(words) == 1 and words[0] not in self._plain:
            about = self._of_subject(words[0], names)
            found = [each.name for each in about]
        else:
            found = self._next(words, typed, names)
        return sorted({word for word in found if word.startswith(typed)})

    def _next(self, words: Sequence[str], typed: str, names: Vocabulary) -> list[str]:
        try:
            reading = Reading(self._command(words, names), names)
            for text in words:
                if reading.at_rest:
                    break
                reading.take(text)
        except (UsageError, ValueError):
            return []
        rest, found = reading.command.rest, list[str]()
        for word in reading.next_words():
            if word.endswith(_REST):
                found += rest([*words, typed], names) if rest else []
            elif word[0].isupper():
                found += KINDS[word].suggest(typed, names)
            else:
                found += word.split("|")[-1:]  # the alternative that a keyboard has
        return found

    def _command(self, words: Sequence[str], names: Vocabulary) -> PromptCommand:
        first = words[0]
        if first in self._plain:
            return self._plain[first]
        if first not in names.subjects:
            near = did_you_mean(first, [*self._plain, *names.subjects])
            hosts = choices(list(dict.fromkeys(names.hosts.values())))
            raise UsageError(f"no command or host {first!r}{near}; `help` lists all commands, hosts are {hosts}")
        about = {each.name: each for each in self._of_subject(first, names)}
        allowed = choices([each.name for each in about.values() if each.group])
        if len(words) < 2:
            raise UsageError(f"{first}: a command is missing; it has {allowed}")
        if words[1] not in about:
            near = did_you_mean(words[1], about)
            raise UsageError(f"{words[1]!r}: {first} has no such command; it has {allowed}{near}")
        return about[words[1]]

    def _of_subject(self, word: str, names: Vocabulary) -> list[PromptCommand]:
        if word not in names.subjects:
            return []
        subject = names.hosts.get(word, word)
        return [each for each in self._about if each.applies(subject, names)]


def _words(line: str) -> list[tuple[str, int]]:
    """Return the words of a line and where each begins. `#` begins a comment at the beginning of a line."""
    return [] if line.lstrip().startswith("#") else [(found[0], found.start()) for found in re.finditer(r"\S+", line)]
