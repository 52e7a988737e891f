"""Quantities: what is read, what is refused and in which words, and that formatting inverts parsing."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.units import (
    UnitError,
    format_bit_rate,
    format_byte_rate,
    format_duration,
    format_share,
    format_size,
    parse_bit_rate,
    parse_byte_rate,
    parse_duration,
    parse_duration_us,
    parse_share,
    parse_size,
)

PARSERS = (parse_bit_rate, parse_byte_rate, parse_size, parse_duration)


@pytest.mark.parametrize(
    ("parse", "text", "quantity"),
    [
        (parse_bit_rate, "400mbit", 400_000_000),
        (parse_bit_rate, "400 mbit", 400_000_000),
        (parse_bit_rate, "400Mbit/s", 400_000_000),
        (parse_bit_rate, "1Gbit/s", 10**9),
        (parse_bit_rate, "1.5gbit", 1_500_000_000),
        (parse_bit_rate, "0.001kbit", 1),
        (parse_bit_rate, "8KBIT", 8_000),
        (parse_bit_rate, "8000bit", 8_000),
        (parse_byte_rate, "10MB/s", 10**7),
        (parse_byte_rate, "1 kB/s", 1000),
        (parse_byte_rate, "1KB/s", 1000),
        (parse_byte_rate, "1MiB/s", 2**20),
        (parse_byte_rate, "0.5GiB/s", 2**29),
        (parse_byte_rate, "7B/s", 7),
        (parse_size, "1MiB", 2**20),
        (parse_size, "50kB", 50_000),
        (parse_size, "50KiB", 51_200),
        (parse_size, "1.5GB", 1_500_000_000),
        (parse_size, "0B", 0),
        (parse_duration, "30ms", 0.03),
        (parse_duration, "1.5s", 1.5),
        (parse_duration, "5min", 300.0),
        (parse_duration, "2h", 7200.0),
        (parse_duration, "10us", 1e-5),
        (parse_duration, "1 µs", 1e-6),
        (parse_duration_us, "20ms", 20_000),
        (parse_duration_us, "0.5ms", 500),
        (parse_duration_us, "7us", 7),
        (parse_duration_us, "1.5s", 1_500_000),
    ],
)
def test_quantities(parse: Callable[[object], float], text: str, quantity: float) -> None:
    assert parse(text) == quantity


BIT = "allowed: a number and kbit, mbit or gbit"
BYTE = "allowed: a number and kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s"
SIZE = "allowed: a number and B, kB, MB, GB, KiB, MiB or GiB"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("400", f"400 has no unit; {BIT}; did you mean 400mbit?"),
        (400, f"400 has no unit; {BIT}; did you mean 400mbit?"),
        (400_000_000, f"400000000 has no unit; {BIT}; did you mean 400mbit?"),
        (0.4, f"0.4 has no unit; {BIT}; did you mean 0.4mbit?"),
        (float("nan"), f"nan has no unit; {BIT}"),
        ("10MB/s", f"10MB/s is a byte rate, not a bit rate; {BIT}; did you mean 80mbit?"),
        ("10MB", f"10MB is a size, not a bit rate; {BIT}"),
        ("400mbps", f"400mbps can be read as bits or as bytes; {BIT}; did you mean 400mbit?"),
        ("400mbitt", f"400mbitt has an unknown unit; {BIT}; did you mean 400mbit?"),
        ("400mibt", f"400mibt has an unknown unit; {BIT}; did you mean 400mbit?"),
        ("-5mbit", f"-5mbit is negative; {BIT}, not below zero"),
        ("0.0001kbit", f"0.0001kbit is not a whole number of bits; {BIT}"),
        ("1e3mbit", f"1e3mbit is not a number with a unit; {BIT}"),
        ("1,000mbit", f"1,000mbit is not a number with a unit; {BIT}"),
        ("nan mbit", f"nan mbit is not a number with a unit; {BIT}"),
        ("inf", f"inf is not a number with a unit; {BIT}"),
        ("mbit", f"mbit is not a number with a unit; {BIT}"),
        ("", f"'' is not a number with a unit; {BIT}"),
        ("\uff14\uff10\uff10mbit", f"\uff14\uff10\uff10mbit is not a number with a unit; {BIT}"),
        ("999999999999999999gbit", f"999999999999999999gbit is too large to be meant; {BIT}, 10^18 at most"),
        (None, f"nothing is not a bit rate; {BIT}"),
        (True, f"true is not a bit rate; {BIT}"),
    ],
)
def test_bit_rates_refused(value: object, message: str) -> None:
    with pytest.raises(UnitError) as refused:
        parse_bit_rate(value)
    assert str(refused.value) == message


DURATION, SHARE = "allowed: a number and us, ms, s, min or h", "allowed: a number and % or ppm"


@pytest.mark.parametrize(
    ("parse", "value", "message"),
    [
        (parse_byte_rate, "10MB", f"10MB is a size, not a byte rate; {BYTE}; did you mean 10MB/s?"),
        (parse_byte_rate, "80mbit", f"80mbit is a bit rate, not a byte rate; {BYTE}; did you mean 10MB/s?"),
        (parse_byte_rate, "10", f"10 has no unit; {BYTE}; did you mean 10MB/s?"),
        (parse_byte_rate, "10Mb/s", f"10Mb/s has an unknown unit; {BYTE}; did you mean 10MB/s?"),
        (parse_byte_rate, "10s", f"10s is a duration, not a byte rate; {BYTE}"),
        (parse_size, "1MB/s", f"1MB/s is a byte rate, not a size; {SIZE}; did you mean 1MB?"),
        (parse_duration, 30, f"30 has no unit; {DURATION}; did you mean 30s?"),
        (parse_duration, "5mins", f"5mins has an unknown unit; {DURATION}; did you mean 5min?"),
        (parse_duration_us, "0.1us", f"0.1us is not a whole number of microseconds; {DURATION}"),
        (parse_share, "0.1", f"0.1 has no unit; {SHARE}; did you mean 0.1%?"),
        (parse_share, "0.00001%", f"0.00001% is finer than one in a million; {SHARE}"),
        (parse_share, "1ms", f"1ms is a duration, not a share; {SHARE}"),
    ],
)
def test_other_quantities_refused(parse: Callable[[object], float], value: object, message: str) -> None:
    with pytest.raises(UnitError) as refused:
        parse(value)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (format_bit_rate(400_000_000), "400mbit"),
        (format_bit_rate(1_500_000_000), "1.5gbit"),
        (format_bit_rate(1_234_567), "1234.567kbit"),
        (format_bit_rate(0), "0bit"),
        (format_bit_rate(399_812_345, significant=4), "399.8mbit"),
        (format_byte_rate(10_000_000), "10MB/s"),
        (format_byte_rate(9_874_321.7, significant=3), "9.87MB/s"),
        (format_byte_rate(999_999, significant=3), "1000kB/s"),
        (format_size(51_200), "50KiB"),
        (format_size(50_000), "50kB"),
        (format_size(2**30), "1GiB"),
        (format_size(123_456_789), "123456.789kB"),
        (format_duration(0.03), "30ms"),
        (format_duration(90), "1.5min"),
        (format_duration(0), "0s"),
        (format_duration(0.00001), "10us"),
        (format_duration(12.3456), "12.35s"),
        (format_duration(float("inf")), "never"),
    ],
)
def test_formats(said: str, text: str) -> None:
    assert said == text


@given(st.integers(0, 10**15))
def test_formats_invert_parsing(quantity: int) -> None:
    assert parse_bit_rate(format_bit_rate(quantity)) == quantity
    assert parse_byte_rate(format_byte_rate(quantity)) == quantity
    assert parse_size(format_size(quantity)) == quantity


@given(st.one_of(st.text(), st.from_regex(r"[0-9.]+ ?[A-Za-z/µ]*"), st.floats(), st.integers(), st.none()))
def test_anything_is_a_quantity_or_a_unit_error(value: object) -> None:
    for parse in PARSERS:
        try:
            quantity = parse(value)
        except UnitError as error:
            assert str(error).isprintable() or "allowed" in str(error)
        else:
            assert 0 <= quantity <= 10**18


@pytest.mark.parametrize(
    ("text", "share_ppm", "shown"),
    [("0.1%", 1_000, "0.1%"), ("50ppm", 50, "0.005%"), ("2 %", 20_000, "2%"), ("0%", 0, "0%"), ("100%", 10**6, "100%")],
)
def test_shares(text: str, share_ppm: int, shown: str) -> None:
    assert parse_share(text) == share_ppm
    assert format_share(share_ppm) == shown
    assert parse_share(shown) == share_ppm
