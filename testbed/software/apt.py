"""This machine's settings of apt: the sources of a suite, and how packages are fetched."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

APT_FOLDER = Path("/etc/apt")


def host_sources(suite: str, apt: Path = APT_FOLDER) -> tuple[str, ...]:
    """Return the machine's sources of `suite` and its updates, as sources.list lines; omit others."""
    lines: list[str] = []
    for path in (apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))):
        if path.is_file() and path.suffix in (".list", ".sources"):
            text = path.read_text(encoding="utf-8", errors="replace")
            lines += one_line_entries(text) if path.suffix == ".list" else deb822_entries(text)
    return tuple(dict.fromkeys(line for line in lines if _belongs(line, suite)))


def one_line_entries(text: str) -> list[str]:
    """Return the `deb` lines of a sources.list."""
    stripped = (line.split("#", 1)[0].strip() for line in text.splitlines())
    return [line for line in stripped if line.startswith(("deb ", "deb\t"))]


def deb822_entries(text: str) -> list[str]:
    """Return the enabled entries of a .sources file, each as lines of a sources.list."""
    lines = []
    for fields in _stanzas(text.splitlines()):
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() == "no":
            continue
        key = fields.get("signed-by", "")
        # A key in the file has no form in a sources.list: the archive's own keyring is used.
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


def fetch_settings() -> str:
    """Return this machine's settings for fetching packages, as an apt.conf: proxies, checks. Empty without apt."""
    program = shutil.which("apt-config")
    if program is None:
        return ""
    said = subprocess.run([program, "dump"], capture_output=True, text=True, check=False).stdout
    return parse_fetch_settings(said)


NOT_FETCHING = ("Acquire::IndexTargets", "Acquire::Changelogs", "Acquire::cdrom")
OF_FILES = ("Proxy-Auto-Detect", "ProxyAutoDetect", "CaInfo", "SslCert", "SslKey")
"""Settings that name a file of this machine, which an image does not have."""


def parse_fetch_settings(dump: str) -> str:
    """Return the settings in the output of `apt-config dump` that say how to fetch, without empty ones."""
    kept = (
        line
        for line in dump.splitlines()
        if line.startswith("Acquire::")
        and not line.startswith(NOT_FETCHING)
        and not line.endswith(' "";')
        and not line.split()[0].endswith(OF_FILES)
    )
    return "".join(f"{line}\n" for line in kept)


def credentials(apt: Path = APT_FOLDER) -> str:
    """Return the content of this machine's files of logins for package sources, as one auth.conf."""
    files = (apt / "auth.conf", *sorted((apt / "auth.conf.d").glob("*.conf")))
    return "".join(file.read_text(encoding="utf-8") + "\n" for file in files if file.is_file())
