"""The site of the documentation: built without a warning, whole, and readable without a network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.docs_site import linked_files, navigation, rewritten, site_path

ROOT = Path(__file__).parents[2]
FETCHED = re.compile(
    r"""<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=["'](?:https?:)?//|@import|url\(["']?http"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_every_page_is_there_and_fetches_nothing(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    for page in ("index", "contributing", "shell", "howto-nightly-ci", "gallery", "reference/commands"):
        assert (site / f"{page}.html").exists(), page
    fetching = [
        str(path) for path in [*pages, *site.rglob("*.css")] if FETCHED.search(path.read_text(encoding="utf-8"))
    ]
    assert fetching == []


def test_blocks_and_lists_are_rendered_as_such(site):
    """A block of code within a list, and a list right after a paragraph, would be text on the site."""
    as_text = re.compile(r"```|<code>(?:sh|python|yaml|text)\n|<p>[^<]*\n(?:- |\* |1\. |\| )")
    found = [f"{path.name}: {hit[0]}" for path in site.rglob("*.html") for hit in as_text.finditer(path.read_text())]
    assert found == []


def test_links_to_files_outside_the_pages_lead_to_copies(site):
    assert "docs/ci/github-actions.yml" in linked_files() and "LICENSE" in linked_files()
    for path in linked_files():
        assert (site / "files" / path).read_bytes() == (ROOT / path).read_bytes()


def test_the_groups_of_readme_are_the_navigation():
    groups = navigation((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [name for group in groups for name in group] == ["Home", "Start", "Do", "Understand", "Refer"]
    text = str(groups)
    for path in (ROOT / "docs").rglob("*.md"):
        assert path.relative_to(ROOT / "docs").as_posix() in text, f"{path} is in no group of README's Documentation"


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("README.md", "[a](docs/faults.md#kinds)", "[a](faults.md#kinds)"),
        ("README.md", "[a](docs/measurements)", "[a](measurements/index.md)"),
        ("docs/faults.md", "[a](kip73.md) [b](#kinds)", "[a](kip73.md) [b](#kinds)"),
        ("docs/architecture.md", "[a](../CONTRIBUTING.md)", "[a](contributing.md)"),
        ("docs/reference/experiments.md", "[a](../../topologies/s3.yaml)", "[a](../files/topologies/s3.yaml)"),
        ("docs/schema.md", "[a](../results/contract)", "[a](files/results/contract/__init__.py)"),
        ("docs/faults.md", "[a](https://example.org/x)", "[a](https://example.org/x)"),
        ("docs/faults.md", "```sh\n[a](nowhere.md)\n```", "```sh\n[a](nowhere.md)\n```"),
        ("docs/faults.md", "```yaml wrong\na: b c\n```", "```yaml\na: b c\n```"),
    ],
)
def test_links_are_rewritten_for_the_site(page, text, expected):
    assert rewritten(text, page) == expected


def test_a_link_to_nothing_is_refused():
    with pytest.raises(ValueError, match="no such file"):
        site_path("docs/there-is-none.md")
