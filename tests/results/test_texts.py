"""Numbers of things and cut lists as text."""

import pytest

from results.contract.texts import and_more, counted, digits, percent_change, plural, shortened


@pytest.mark.parametrize(
    ("items", "most", "texts"),
    [
        ([], 2, []),
        (["a", "b"], 2, ["a", "b"]),
        (("a", "b", "c"), 2, ["a", "b", "and 1 more"]),
        ({3: "x", 4: "y", 5: "z"}, 1, ["3", "and 2 more"]),
    ],
)
def test_a_list_that_is_cut_says_how_many_it_leaves_out(items, most, texts):
    assert shortened(items, most) == texts


@pytest.mark.parametrize(("left", "texts"), [(-1, []), (0, []), (1, ["and 1 more"])])
def test_a_list_that_is_whole_leaves_nothing_out(left, texts):
    assert and_more(left) == texts


def test_what_is_left_out_has_a_name_where_the_list_gives_none():
    assert [*and_more(1, "change"), *and_more(2, "change")] == ["and 1 more change", "and 2 more changes"]


def test_one_thing_is_no_plural():
    assert [plural(count, "run") for count in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
    words = {"copy": "copies", "entry": "entries", "day": "days", "batch": "batches", "phase": "phases"}
    assert [plural(count, word) for word in words for count in (1, 2)] == [
        text for one, two in words.items() for text in (f"1 {one}", f"2 {two}")
    ]


@pytest.mark.parametrize(("verb", "of_two"), [("is", "are"), ("was", "were"), ("has", "have"), ("moves", "move")])
def test_a_verb_agrees_with_its_number(verb, of_two):
    told = [counted(count, "run", verb) for count in (0, 1, 2)]
    assert told == [f"0 runs {of_two}", f"1 run {verb}", f"2 runs {of_two}"]


def test_a_large_number_has_no_power_of_ten():
    """A wait of 31 s was `3.1e+04 ms` in a comparison."""
    assert [digits(value) for value in (31_000, 12_345.6, 999.96, 0.25, 0.0)] == ["31000", "12350", "1000", "0.25", "0"]
    assert (digits(1500.0, 3, "+"), digits(-1500.0, 3, "+"), digits(1.5, 3, "+")) == ("+1500", "-1500", "+1.5")
    assert (digits(2.5e30), digits(float("inf"))) == ("2.5e+30", "inf")


@pytest.mark.parametrize(("ratio", "text"), [(1.093, "+9.3 %"), (1, "+0.0 %"), (0.5, "-50.0 %"), (2.144, "+114.4 %")])
def test_a_ratio_is_shown_as_a_change(ratio, text):
    assert percent_change(ratio) == text
