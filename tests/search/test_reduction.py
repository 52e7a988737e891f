"""Shrinking with a predicate that is known: it finds the planted cause, and nothing else is left."""

from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.search.draft import Draft, DrawnStep, DrawnTopic
from testbed.search.reduction import fewest, simpler_drafts, smallest, sound


@given(st.lists(st.integers(0, 30), max_size=12, unique=True), st.data())
def test_fewest_is_the_planted_cause(items, data):
    cause = data.draw(st.sets(st.sampled_from(items), max_size=3)) if items else set()

    def fails(part):
        return cause <= set(part)

    assert set(fewest(items, fails)) == cause


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(0, 2**16))
def test_no_single_item_can_be_left_out_whatever_the_predicate(items, salt):
    """Of a predicate that is not monotone the result still fails, and is minimal by one."""

    def fails(part):
        return len(part) == len(items) or hash((salt, tuple(part))) % 3 == 0

    found = fewest(tuple(items), fails)
    assert found == tuple(items) or fails(found)
    for place in range(len(found)):
        assert not fails(found[:place] + found[place + 1 :])


STEPS = st.builds(
    DrawnStep,
    st.sampled_from(["move", "cancel", "broker_kill", "nic_rate", "restart", "change_throttle"]),
    st.just({}),
    st.floats(0, 8).map(lambda seconds: round(seconds, 1)),
    st.sampled_from([None, None, 30, 100]),
    st.sampled_from([None, 0.5, 2.0, 4.0]),
)
TOPICS = st.builds(
    DrawnTopic, st.sampled_from([1, 2, 6]), st.just(("b1", "b2")), st.sampled_from([0, 8000, 32000]), st.just(1)
)
DRAFTS = st.builds(
    Draft,
    st.just("three-brokers"),
    st.fixed_dictionaries({"orders": TOPICS, "clicks": TOPICS}),
    st.sampled_from([0, 400]),
    st.lists(STEPS, min_size=1, max_size=6).map(tuple),
    st.just(12.0),
)


def weight(draft):
    """Return the size of an incident: its steps, and a number that each simplification lowers."""
    topics = sum(1 + topic.partitions + topic.kilobytes + len(topic.hosts) for topic in draft.topics.values())
    steps = sum(step.at_s + (step.lasts_s or 0.0) + (step.share is not None) for step in draft.steps)
    return len(draft.steps), draft.load_kb_per_s + draft.calm_s + topics + steps


@given(DRAFTS)
def test_every_simplification_is_smaller_and_sound_or_refused(draft):
    for simpler in simpler_drafts(draft):
        assert weight(simpler) < weight(draft)


@settings(max_examples=60, deadline=None)
@given(DRAFTS, st.data())
def test_the_planted_steps_are_left_at_their_simplest(draft, data):
    planted = data.draw(st.sets(st.sampled_from([step.action for step in draft.steps]), min_size=1, max_size=3))
    needs_load = data.draw(st.booleans()) and draft.load_kb_per_s > 0
    asked = []

    def fails(each):
        asked.append(each)
        return planted <= {step.action for step in each.steps} and (not needs_load or each.load_kb_per_s > 0)

    found = smallest(draft, fails)
    assert sorted(step.action for step in found.steps) == sorted(planted)
    assert (found.load_kb_per_s > 0) == needs_load
    assert sound(found) or not sound(draft)
    if "move" in planted or all(step.share is None for step in draft.steps):
        assert all(step.at_s < 0.5 and step.share is None and step.lasts_s in (None, 0.5) for step in found.steps)
        assert found.calm_s <= 5.0
    assert len(asked) < 200


def test_a_predicate_that_ends_keeps_the_smallest_so_far():
    draft = Draft(
        "three-brokers", {"orders": DrawnTopic(1, ("b1",), 8000, 1)}, 0, (DrawnStep("move"), DrawnStep("cancel")), 12.0
    )
    answers = iter([True])
    found = smallest(draft, lambda each: next(answers, False))
    assert len(found.steps) == 1
