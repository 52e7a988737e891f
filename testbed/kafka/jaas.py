"""The one login module of a client's ``sasl.jaas.config``. Pure."""

import re
from dataclasses import dataclass, field

MODULES = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}
"""Login module → the mechanisms it is for."""

_WORD = r'"(?:[^"\\]|\\.)*"|[^\s=;"]+'
_WHOLE = re.compile(rf"\s*(?P<module>[\w.$]+)\s+(?P<flag>\w+)(?P<options>(?:\s+[\w.-]+\s*=\s*(?:{_WORD}))*)\s*;\s*")
_OPTION = re.compile(rf"([\w.-]+)\s*=\s*({_WORD})")


class JaasError(ValueError):
    """A login that cannot be used; the message holds nothing of its options' values."""


@dataclass(frozen=True)
class Login:
    """A user and a password, for these mechanisms."""

    mechanisms: tuple[str, ...]
    username: str
    password: str = field(repr=False)


def parse(text: str) -> Login:
    """Read ``org.apache.kafka…LoginModule required username="…" password="…";``. Raises `JaasError`."""
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        raise JaasError('is not of the form `MODULE required username="…" password="…";`')
    module = whole["module"]
    if module not in MODULES:
        raise JaasError(f"{module} is no login module of the Python clients; they have {' and '.join(sorted(MODULES))}")
    options = {name: _unquoted(value) for name, value in _OPTION.findall(whole["options"])}
    unknown = sorted(set(options) - {"username", "password"})
    if unknown:
        raise JaasError(f"the options {', '.join(unknown)} cannot be mapped to the Python clients")
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise JaasError(f"lacks {' and '.join(missing)}")
    return Login(MODULES[module], options["username"], options["password"])


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if word.startswith('"') else word
