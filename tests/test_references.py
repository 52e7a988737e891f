"""The reference pages say what the code says."""

from tools.references import PAGES, outdated


def test_the_reference_pages_are_what_the_code_says():
    assert outdated() == [], "run `./run exec python -m tools.references`"


def test_every_page_has_something_to_say():
    assert all(page().count("\n| `") > 20 for page in PAGES.values())
