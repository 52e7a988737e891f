"""This machine's own package sources, so that the node image comes from the mirror its owner chose."""

from collections.abc import Iterator, Sequence
from pathlib import Path

APT = Path("/etc/apt")


def host_sources(suite: str, apt: Path = APT) -> tuple[str, ...]:
    """The machine's sources of `suite` and its updates, as sources.list lines; others are left out."""
    lines: list[str] = []
    for path in (apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))):
        if path.is_file() and path.suffix in (".list", ".sources"):
            text = path.read_text(encoding="utf-8", errors="replace")
            lines += one_line_entries(text) if path.suffix == ".list" else deb822_entries(text)
    return tuple(dict.fromkeys(line for line in lines if _belongs(line, suite)))


def one_line_entries(text: str) -> list[str]:
    """The `deb` lines of a sources.list."""
    stripped = (line.split("#", 1)[0].strip() for line in text.splitlines())
    return [line for line in stripped if line.startswith(("deb ", "deb\t"))]


def deb822_entries(text: str) -> list[str]:
    """The enabled entries of a .sources file, each as lines of a sources.list."""
    lines = []
    for fields in _stanzas(text.splitlines()):
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() == "no":
            continue
        key = fields.get("signed-by", "")
        # A key inside the file has no form in a sources.list: the archive's own keyring then serves.
        option = f"[signed-by={key}] " if key.startswith("/") else ""
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                lines.append(f"deb {option}{uri} {suite} {fields.get('components', '')}".rstrip())
    return lines


def _stanzas(lines: Sequence[str]) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    name = ""
    for line in (*lines, ""):
        if line.startswith("#"):
            continue
        if not line.strip():
            if fields:
                yield fields
            fields, name = {}, ""
        elif line[0].isspace():
            fields[name] = f"{fields.get(name, '')} {line.strip()}".strip()
        else:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()


def _belongs(line: str, suite: str) -> bool:
    words = line.split("]", 1)[-1].split() if "[" in line else line.split()[1:]
    return len(words) > 2 and words[1] in (suite, f"{suite}-updates", f"{suite}-security") and "main" in words[2:]
