"""The smallest incident that still fails: delta debugging over its steps, then simpler values of its parameters. Pure.

The predicate decides alone. It returns True when an incident still fails; anything else keeps the incident before.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from testbed.search.draft import Draft, DrawnStep

T = TypeVar("T")
Fails = Callable[[Draft], bool]
LEAST_KB, LEAST_CALM_S = 1000, 4.0


def smallest(draft: Draft, fails: Fails) -> Draft:
    """Return an incident that fails, from which no single step can be left out, and no parameter be made simpler.

    `draft` is known to fail. When the predicate stops agreeing (because its budget ended), the result is the smallest
    incident so far.
    """
    current = _simpler(_fewer(draft, fails), fails)
    # Other parameters may have made another step needless.
    fewer = _fewer(current, fails)
    return fewer if fewer == current else _simpler(fewer, fails)


def _simpler(draft: Draft, fails: Fails) -> Draft:
    """Return an incident none of whose simplifications fails.

    After a success the next simplification is tried, not the first one again: those before it were refused just now.
    """
    place, refused = 0, 0
    # Often everything can be as simple as it gets: one replay then takes the place of a dozen.
    draft = next((each for each in _simplest(draft) if each != draft and fails(each)), draft)
    while True:
        tried = list(simpler_drafts(draft))
        if refused >= len(tried):
            return draft
        place %= len(tried)
        if fails(tried[place]):
            draft, refused = tried[place], 0
        else:
            place, refused = place + 1, refused + 1


def _simplest(draft: Draft) -> Iterator[Draft]:
    """Yield the incident with every simplification at once, and with those alone that leave the steps as they are."""
    for simplifications in (simpler_drafts, _simpler_surroundings):
        simplest = draft
        while (simpler := next(simplifications(simplest), None)) is not None:
            simplest = simpler
        yield simplest


def fewest(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return a part of `items`, in order, that fails and from which no single item can be left out (ddmin)."""
    kept, parts = tuple(items), 2
    while kept:
        if len(kept) == 1:
            return () if fails(()) else kept
        size = -(-len(kept) // parts)
        chunks = [kept[begin : begin + size] for begin in range(0, len(kept), size)]
        # Of two halves each is the complement of the other; of single items the complements alone are smaller enough.
        tried: list[tuple[T, ...]] = list(chunks) if parts < len(kept) or parts == 2 else []
        if parts > 2:
            tried += [
                tuple(item for other in chunks[:place] + chunks[place + 1 :] for item in other)
                for place in range(len(chunks))
            ]
        smaller = next((each for each in tried if fails(each)), None)
        if smaller is not None:
            parts = 2 if len(smaller) <= len(kept) // 2 else max(parts - 1, 2)
            kept = smaller
        elif parts >= len(kept):
            return kept
        else:
            parts = min(2 * parts, len(kept))
    return kept


def simpler_drafts(draft: Draft) -> Iterator[Draft]:
    """Yield each incident that is simpler in one respect. A part of it is smaller, so a search among them ends."""
    yield from _simpler_surroundings(draft)
    for place, step in enumerate(draft.steps):
        for simpler in _simpler_steps(step):
            yield draft.with_steps([*draft.steps[:place], simpler, *draft.steps[place + 1 :]])


def _simpler_surroundings(draft: Draft) -> Iterator[Draft]:
    """Yield each incident with the same steps that is simpler in one respect."""
    # Earlier first: every further replay is shorter then.
    last_s = max((step.at_s + (step.lasts_s or 0.0) for step in draft.steps), default=0.0)
    for earlier_s in (LEAST_CALM_S, draft.calm_s / 2):
        calm_s = round(max(earlier_s, last_s, LEAST_CALM_S), 1)
        if calm_s <= draft.calm_s - 1:
            yield replace(draft, calm_s=calm_s)
    if draft.load_kb_per_s:
        yield replace(draft, load_kb_per_s=0)
    yield from _fewer_topics(draft)
    yield from _smaller_topics(draft)


def _fewer(draft: Draft, fails: Fails) -> Draft:
    steps = fewest(draft.steps, lambda steps: sound(draft.with_steps(steps)) and fails(draft.with_steps(steps)))
    return draft.with_steps(steps)


def sound(draft: Draft) -> bool:
    """Return whether each step that waits for a move has one to wait for, and each topic of a step exists."""
    moved = any(step.action == "move" for step in draft.steps)
    named = {topic for step in draft.steps for topic in step.parameters.get("topics", ())}
    return named <= draft.topics.keys() and (moved or all(step.share is None for step in draft.steps))


def _fewer_topics(draft: Draft) -> Iterator[Draft]:
    for name in draft.topics:
        others = {other: topic for other, topic in draft.topics.items() if other != name}
        smaller = replace(draft, topics=others)
        if others and sound(smaller):
            yield smaller if smaller.loaded else replace(smaller, load_kb_per_s=0)


def _smaller_topics(draft: Draft) -> Iterator[Draft]:
    for name, topic in draft.topics.items():
        tried = [1, topic.partitions // 2] if topic.partitions > 1 else []
        for partitions in dict.fromkeys(tried):
            # A partition keeps its size, so that what depends on it stays.
            kilobytes = max(topic.kilobytes * partitions // topic.partitions, min(LEAST_KB, topic.kilobytes))
            yield _with_topic(draft, name, partitions=partitions, kilobytes=kilobytes)
        if topic.kilobytes >= 2 * LEAST_KB:
            yield _with_topic(draft, name, kilobytes=topic.kilobytes // 2)


def _with_topic(draft: Draft, name: str, **changed: Any) -> Draft:
    return replace(draft, topics={**draft.topics, name: replace(draft.topics[name], **changed)})


def _simpler_steps(step: DrawnStep) -> Iterator[DrawnStep]:
    if "throttle" in step.parameters:
        yield replace(step, parameters={key: value for key, value in step.parameters.items() if key != "throttle"})
    topics = step.parameters.get("topics", ())
    if len(topics) > 1:
        for topic in topics:
            yield replace(step, parameters={**step.parameters, "topics": [topic]})
    if step.share is not None:
        yield replace(step, share=None, at_s=0.0)
    for at_s in (0.0, step.at_s / 2):
        if at_s <= step.at_s - 0.5:
            yield replace(step, at_s=round(at_s, 1))
    if step.lasts_s is not None and step.lasts_s > 0.5:
        yield replace(step, lasts_s=max(0.5, round(step.lasts_s / 2, 1)))
