"""The user's registry settings, given to pip, told to uv."""

import ast
from collections.abc import Mapping


def parse_pip_settings(listing: str) -> dict[str, str]:
    """The settings in what `pip config list` prints; one given in several places counts as pip counts it.

    pip lists `global.index-url='…'`, `install.index-url='…'`, `:env:.index-url='…'`: the command's own
    section is above the global one, the environment above both.
    """
    ranks = {"global": 0, "install": 1, ":env:": 2}
    found: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        key, equals, quoted = line.partition("=")
        section, dot, name = key.rpartition(".")
        rank = ranks.get(section)
        if not (equals and dot) or rank is None:
            continue
        try:
            value = str(ast.literal_eval(quoted))
        except (ValueError, SyntaxError):
            continue  # not a setting
        if name not in found or rank >= found[name][0]:
            found[name] = (rank, value)
    return {name: value for name, (_, value) in found.items()}


def uv_variables(pip: Mapping[str, str]) -> dict[str, str]:
    """uv's variables for pip's settings: indexes, local wheels, certificates, proxy."""
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "trusted-host": "UV_INSECURE_HOST",
        "cert": "SSL_CERT_FILE",
        "client-cert": "SSL_CLIENT_CERT",
        "timeout": "UV_HTTP_TIMEOUT",
    }
    told = {names[name]: " ".join(value.split()) for name, value in pip.items() if name in names and value.split()}
    if "UV_FIND_LINKS" in told:
        told["UV_FIND_LINKS"] = told["UV_FIND_LINKS"].replace(" ", ",")
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        told["UV_NO_INDEX"] = "1"
    if proxy := pip.get("proxy"):
        told |= {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy}
    return told
