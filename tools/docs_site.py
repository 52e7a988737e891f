"""The hooks of MkDocs: README's groups are the navigation, and links to files outside docs/ lead to copies of them."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages outside docs/, and their places in the site."""
MEASUREMENTS = "measurements/index.md"
_LINK = re.compile(r"(!?\[[^]]*\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"\A(```\w+) \w+$", re.MULTILINE)
"""A word after the language, by which a test finds a block; Python-Markdown knows no such word."""
_GROUP = re.compile(r"^\*\*(\w+)\*\*:(.*?)(?=^\*\*|^#|\Z)", re.DOTALL | re.MULTILINE)


def site_path(target: str) -> str:
    """Return the place in the site of a file or folder of the repository. Raise ValueError when there is none."""
    path = ROOT / target
    if not path.exists():
        raise ValueError(f"{target}: there is no such file")
    if target == "docs/measurements":
        return MEASUREMENTS
    if target in PAGES:
        return PAGES[target]
    copied = target.startswith(("docs/ci", "docs/notebooks"))
    if target.startswith("docs/") and not copied:
        return target.removeprefix("docs/")
    return f"files/{target}/__init__.py" if path.is_dir() else f"files/{target}"


def rewritten(text: str, page: str) -> str:
    """Return a page's text with its links and blocks as the site needs them; `page` is its path in the repository."""
    here = posixpath.dirname(site_path(page))

    def place(found: re.Match[str]) -> str:
        link, hash_sign, anchor = found[2].partition("#")
        if not link or ":" in link:
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
        return f"{found[1]}{posixpath.relpath(site_path(target), here or '.')}{hash_sign}{anchor}{found[3]}"

    parts = _FENCE.split(text)
    return "".join(_MARK.sub(r"\1", part) if part.startswith("```") else _LINK.sub(place, part) for part in parts)


def linked_files() -> set[str]:
    """Return the files outside docs/ that the pages link to."""
    found = set()
    pages = [*(ROOT / page for page in PAGES), *sorted((ROOT / "docs").rglob("*.md"))]
    for path in pages:
        page = path.relative_to(ROOT).as_posix()
        for _before, link, _after in _LINK.findall(path.read_text(encoding="utf-8")):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link.partition("#")[0]))
            if ":" not in link and link[0] != "#" and (place := site_path(target)).startswith("files/"):
                found.add(place.removeprefix("files/"))
    return found


def navigation(readme: str) -> list[dict[str, Any]]:
    """Return the groups of README's section Documentation, with their pages."""
    section = readme.partition("## Documentation")[2].partition("\n## ")[0]
    groups: list[dict[str, Any]] = [{"Home": "index.md"}]
    for name, text in _GROUP.findall(section):
        entries: list[dict[str, Any]] = []
        for before, link, _after in _LINK.findall(text):
            entries.append({before[1:-2]: site_path(link) if link != "docs/measurements" else _measurements()})
        groups.append({name: entries})
    groups[-1][name].append({"Changes": "changelog.md"})
    return groups


def _measurements() -> list[dict[str, str]]:
    files = sorted((ROOT / "docs" / "measurements").glob("*.md"))
    return [{"Overview": MEASUREMENTS}, *({_title(path): f"measurements/{path.name}"} for path in files)]


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


def _measurements_page() -> str:
    lines = [f"- [{title}]({posixpath.basename(path)})" for each in _measurements()[1:] for title, path in each.items()]
    return "# Measurements\n\nWhat was measured, on which machine, and on which day.\n\n" + "\n".join(lines) + "\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation."""
    config.nav = navigation((ROOT / "README.md").read_text(encoding="utf-8"))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files that are outside docs/, and the colours of code."""
    for source, target in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=rewritten(text, source)))
    files.append(File.generated(config, MEASUREMENTS, content=_measurements_page()))
    for path in sorted(linked_files()):
        files.append(File.generated(config, f"files/{path}", content=(ROOT / path).read_bytes()))
    style: str = HtmlFormatter(style="default").get_style_defs(".codehilite")
    files.append(File.generated(config, "assets/code.css", content=style))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text of a page of docs/ as `rewritten` makes it."""
    del config, files
    source = f"docs/{page.file.src_uri}"
    return rewritten(markdown, source) if (ROOT / source).exists() else markdown
