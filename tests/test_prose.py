"""The pages are plain technical English: at most 25 words in a sentence, and no word that says nothing."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_WORDS = 25
PAGES = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
WORD = re.compile(r"[A-Za-z][\w’'-]+")
"""A word has two letters or more: numbers and the symbols of a formula are none."""
EMPTY = ("nobody", "whoever", "anew", "those that", "is told", "are told", "looked at", "beside")


def prose(text):
    """Return the paragraphs and list items of a page, without code, tables and headings, each as one line."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    blocks, current = [], ""
    for line in text.splitlines():
        stripped = line.strip()
        begins = re.match(r"([-*]|\d+\.) ", stripped)
        if not stripped or begins or stripped.startswith(("#", "|", "<", ">", "!")) or line.startswith("    "):
            blocks.append(current)
            current = ""
        if stripped and not stripped.startswith(("#", "|", "<", ">", "!")) and not line.startswith("    "):
            current += f" {stripped}"
    return [block for block in (*blocks, current) if block.strip()]


def sentences(block):
    """Return the statements of a block: a colon or a semicolon ends one as a full stop does."""
    block = re.sub(r"`[^`]*`", "CODE", block)
    block = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", block)
    return re.split(r"(?<=[.!?:;])(?:\*\*)?\s+", block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_sentence_has_at_most_25_words(page):
    long = [
        sentence
        for block in prose(page.read_text(encoding="utf-8"))
        for sentence in sentences(block)
        if len(WORD.findall(sentence)) > MOST_WORDS and " · " not in sentence
    ]
    assert long == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_empty_word(page):
    text = " ".join(prose(page.read_text(encoding="utf-8"))).lower()
    assert [word for word in EMPTY if re.search(rf"\b{word}\b", text)] == []
