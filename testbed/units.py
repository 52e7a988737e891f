"""Quantities with units: conversion between text and bits/s, bytes/s, bytes or seconds.

Rates of bits and of bytes are decimal (`mbit` = 10⁶ bit/s, `MB/s` = 10⁶ B/s); `KiB`, `MiB`, `GiB` are binary.
Results are whole bits or bytes, computed without floating point. A number without a unit is refused: its unit is
ambiguous.
"""

import difflib
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from testbed.suggestions import show

_K, _M, _G = 10**3, 10**6, 10**9
_KI, _MI, _GI = 2**10, 2**20, 2**30

BIT_RATES: Mapping[str, int] = {"gbit": _G, "mbit": _M, "kbit": _K, "bit": 1}
"""Bits per second, largest first. Also accepted: upper case (`Mbit`) and the suffix `/s` (`Mbit/s`)."""
SIZES: Mapping[str, int] = {"GiB": _GI, "GB": _G, "MiB": _MI, "MB": _M, "KiB": _KI, "kB": _K, "B": 1}
"""Bytes. Case matters, except that `KB` is taken for `kB`."""
BYTE_RATES: Mapping[str, int] = {f"{unit}/s": factor for unit, factor in SIZES.items()}
"""Bytes per second."""
DURATIONS: Mapping[str, Fraction] = {
    "h": Fraction(3600),
    "min": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, _K),
    "us": Fraction(1, _M),
}
"""Seconds."""

SHARES: Mapping[str, int] = {"%": _M // 100, "ppm": 1}
"""Parts per million."""

_NUMBER_THEN_UNIT = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)[ ]?([^0-9.,\s][^0-9]*)?")
_MOST = 10**18
_AMBIGUOUS = {"bps": "bit", "kbps": "kbit", "mbps": "mbit", "gbps": "gbit"}


class UnitError(ValueError):
    """An unreadable quantity; the message has the text found, the allowed forms and the likely intention."""


class _Kind(NamedTuple):
    name: str
    units: Mapping[str, int] | Mapping[str, Fraction]
    allowed: str
    example_unit: str


_BIT_RATE = _Kind("bit rate", BIT_RATES, "a number and kbit, mbit or gbit", "mbit")
_BYTE_RATE = _Kind("byte rate", BYTE_RATES, "a number and kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s", "MB/s")
_SIZE = _Kind("size", SIZES, "a number and B, kB, MB, GB, KiB, MiB or GiB", "MB")
_DURATION = _Kind("duration", DURATIONS, "a number and us, ms, s, min or h", "s")
_SHARE = _Kind("share", SHARES, "a number and % or ppm", "%")
_KINDS = (_BIT_RATE, _BYTE_RATE, _SIZE, _DURATION, _SHARE)


def parse_bit_rate(value: object) -> int:
    """Return the bits per second of `"400mbit"`, `"1.5 Gbit/s"`, …. Raise UnitError for any other value."""
    return _whole(value, _BIT_RATE, "not a whole number of bits")


def parse_byte_rate(value: object) -> int:
    """Return the bytes per second of `"10MB/s"`, `"1MiB/s"`, …. Raise UnitError for any other value."""
    return _whole(value, _BYTE_RATE, "not a whole number of bytes")


def parse_size(value: object) -> int:
    """Return the bytes of `"1MiB"`, `"50kB"`, …. Raise UnitError for any other value."""
    return _whole(value, _SIZE, "not a whole number of bytes")


def parse_duration(value: object) -> float:
    """Return the seconds of `"30ms"`, `"5min"`, …. Raise UnitError for any other value."""
    return float(_parse(value, _DURATION))


def parse_duration_us(value: object) -> int:
    """Return the whole microseconds of `"20ms"`, `"0.5ms"`, …. Raise UnitError for any other value."""
    return _whole(value, _DURATION, "not a whole number of microseconds", _M)


def parse_share(value: object) -> int:
    """Return the parts per million of `"0.1%"`, `"50ppm"`, …. Raise UnitError for any other value."""
    return _whole(value, _SHARE, "finer than one in a million")


def format_bit_rate(rate_bps: float, significant: int | None = None) -> str:
    """Return `400mbit` for `400000000`. Exact (`parse_bit_rate` inverts it) unless rounded to `significant` digits."""
    return _format_whole(rate_bps, ("gbit", "mbit", "kbit", "bit"), BIT_RATES, significant)


def format_byte_rate(rate_bytes_per_s: float, significant: int | None = None) -> str:
    """Return `10MB/s` for `10000000`. Exact (`parse_byte_rate` inverts it) unless rounded to `significant` digits."""
    return _format_whole(rate_bytes_per_s, ("GB/s", "MB/s", "kB/s", "B/s"), BYTE_RATES, significant)


def format_size(size_bytes: float, significant: int | None = None) -> str:
    """Return `50KiB` for `51200`, `50kB` for `50000`. Exact (`parse_size` inverts it) unless rounded."""
    if significant is None:
        whole = round(size_bytes)
        for unit in ("GiB", "MiB", "KiB"):
            if whole and whole % SIZES[unit] == 0:
                return f"{whole // SIZES[unit]}{unit}"
    return _format_whole(size_bytes, ("GB", "MB", "kB", "B"), SIZES, significant)


def format_duration(duration_s: float) -> str:
    """Return seconds as readable text of at most four digits: `0.03` → `30ms`, `90` → `1.5min`, infinity → `never`."""
    if math.isinf(duration_s):
        return "never"
    size = abs(duration_s)
    unit = next((unit for unit in ("h", "min", "s", "ms") if size >= DURATIONS[unit]), "us" if size else "s")
    return f"{_digits(duration_s / float(DURATIONS[unit]), 4)}{unit}"


def format_share(share_ppm: int) -> str:
    """Return `0.1%` for `1000`. Exact: `parse_share` inverts it."""
    return f"{Decimal(share_ppm) / SHARES['%']:f}%"


def _whole(value: object, kind: _Kind, otherwise: str, scale: int = 1) -> int:
    quantity = _parse(value, kind) * scale
    if quantity.denominator != 1:
        raise UnitError(f"{show(value)} is {otherwise}; allowed: {kind.allowed}")
    return quantity.numerator


def _parse(value: object, kind: _Kind) -> Fraction:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise UnitError(_no_unit(str(value), kind))
    if not isinstance(value, str):
        raise UnitError(f"{show(value)} is not a {kind.name}; allowed: {kind.allowed}")
    text = value.strip(" ")
    if re.match(r"[-\u2212][0-9]", text):
        raise UnitError(f"{show(value)} is negative; allowed: {kind.allowed}, not below zero")
    match = _NUMBER_THEN_UNIT.fullmatch(text)
    if match is None:
        raise UnitError(f"{show(value)} is not a number with a unit; allowed: {kind.allowed}")
    number, unit = match[1], match[2]
    if unit is None:
        raise UnitError(_no_unit(number, kind))
    factor = _factor(unit, kind)
    if factor is None:
        raise UnitError(_wrong_unit(show(value), number, unit, kind))
    quantity = Fraction(number) * factor
    if quantity > _MOST:
        raise UnitError(f"{show(value)} is too large to be meant; allowed: {kind.allowed}, 10^18 at most")
    return quantity


def _factor(unit: str, kind: _Kind) -> int | Fraction | None:
    if kind is _BIT_RATE:
        return kind.units.get(unit.lower().removesuffix("/s"))
    if unit.startswith("KB"):
        unit = f"k{unit[1:]}"
    return kind.units.get({"µs": "us", "μs": "us"}.get(unit, unit))


def _no_unit(number: str, kind: _Kind) -> str:
    meant = f"; did you mean {number}{kind.example_unit}?" if _NUMBER_THEN_UNIT.fullmatch(number) else ""
    if meant and number.isdecimal() and int(number) >= 10_000:  # so large a number counts single bits or bytes
        in_kind = {"bit rate": format_bit_rate, "byte rate": format_byte_rate, "size": format_size}.get(kind.name)
        meant = f"; did you mean {in_kind(int(number))}?" if in_kind else meant
    return f"{show(number)} has no unit; allowed: {kind.allowed}{meant}"


def _wrong_unit(shown: str, number: str, unit: str, kind: _Kind) -> str:
    other = next((k for k in _KINDS if k is not kind and _factor(unit, k) is not None), None)
    meant = _converted(number, unit, other, kind) if other else _nearest(number, unit, kind)
    found = f"{shown} is a {other.name}, not a {kind.name}" if other else f"{shown} has an unknown unit"
    if unit.lower() in _AMBIGUOUS:
        found = f"{shown} can be read as bits or as bytes"
    return f"{found}; allowed: {kind.allowed}" + (f"; did you mean {meant}?" if meant else "")


def _converted(number: str, unit: str, other: _Kind, kind: _Kind) -> str | None:
    factor = _factor(unit, other)
    assert factor is not None
    quantity = Fraction(number) * factor
    match other.name, kind.name:
        case "size", "byte rate":
            return f"{number}{unit}/s"
        case "byte rate", "size":
            return f"{number}{unit.removesuffix('/s')}"
        case "byte rate", "bit rate":
            return format_bit_rate(int(quantity * 8))
        case "bit rate", "byte rate":
            return format_byte_rate(int(quantity / 8))
    return None


def _nearest(number: str, unit: str, kind: _Kind) -> str | None:
    if unit.lower() in _AMBIGUOUS:
        bits = _AMBIGUOUS[unit.lower()]
        return f"{number}{bits}" if kind is _BIT_RATE else None
    by_folded = {name.lower(): name for name in reversed(list(kind.units))}
    close = difflib.get_close_matches(unit.lower(), by_folded, n=1, cutoff=0.5)
    return f"{number}{by_folded[close[0]]}" if close else None


def _format_whole(value: float, names: tuple[str, ...], units: Mapping[str, int], significant: int | None) -> str:
    if significant is not None:
        name = next((name for name in names if abs(value) >= units[name]), names[-1])
        return f"{_digits(value / units[name], significant)}{name}"
    whole = round(value)
    for name in names:
        # The largest unit that needs at most three decimals represents the number exactly.
        if abs(whole) >= units[name] and whole * 1000 % units[name] == 0:
            return f"{Decimal(whole) / units[name]:f}{name}"
    return f"{whole}{names[-1]}"


def _digits(value: float, significant: int) -> str:
    text = f"{value:.{significant}g}"
    return str(round(float(text))) if "e" in text else text
