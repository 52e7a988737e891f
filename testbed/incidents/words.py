"""Parts of sentences that several kinds share. Pure."""

import re

from testbed.units import format_duration

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
NAMES = rf"{NAME}(?: ?, ?{NAME})*"
AMOUNT = r"[0-9][^\s,]*(?: [a-zA-Zµ]+(?:/s)?)?"
"""Any quantity: `testbed.units` says better than a pattern what is wrong with one."""
DURATION = AMOUNT
PERCENT = r"[0-9][^\s,]*(?: ?%)?"
NUMBER = r"[0-9]+"


def split_names(text: str) -> tuple[str, ...]:
    """`a, b` → both."""
    return tuple(re.split(r" ?, ?", text))


def parse_percent(text: str) -> float:
    """`50%` → 0.5. Raises ValueError outside 0 to 100."""
    number = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?%", text)
    value = float(number[1]) / 100 if number else -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"{text} is not a share; allowed: 0% to 100%")
    return value


def format_percent(share: float) -> str:
    """0.5 → `50%`."""
    return f"{share * 100:g}%"


def format_time(seconds: float) -> str:
    """90 → `90s`, 0.5 → `500ms`: a timeline is told in seconds, also beyond a minute."""
    return f"{seconds:g}s" if seconds >= 1 else format_duration(seconds)


def optional_topic(topic: str | None) -> str:
    """` of orders`, or nothing."""
    return f" of {topic}" if topic else ""
