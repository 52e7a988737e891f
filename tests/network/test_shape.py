"""Shaping as text: what is asked of tc, what is read from its answers. (The kernel's side:
test_shape_kernel.py.)"""

import json

import pytest

from testbed.network.shape import (
    Shape,
    ShapeError,
    bursts_as_shown,
    class_show_command,
    compare,
    compare_impairment,
    leaf_limit_bytes,
    offload_command,
    parse_netem,
    parse_shape,
    payload_bytes_per_s,
    qdisc_show_command,
    rate_as_shown,
    tc_lines,
)
from testbed.topology import Impairment

# As printed by iproute2 6.1 on a veth shaped to 400 mbit.
QDISCS = json.loads(
    '[{"kind":"htb","handle":"1:","root":true,"refcnt":3,"options":{"r2q":10,"default":"0x10",'
    '"direct_packets_stat":0,"direct_qlen":1000}},'
    '{"kind":"bfifo","handle":"10:","parent":"1:10","options":{"limit":1500000}}]'
)
CLASS = (
    "class htb 1:10 root leaf 10: prio 0 quantum 1514 rate 400Mbit ceil 400Mbit linklayer ethernet "
    "burst 50Kb/1 mpu 0b cburst 50Kb/1 mpu 0b level 0 \n"
)
DECLARED = Shape(400_000_000, 51_200)


def test_lines() -> None:
    assert tc_lines("data0", DECLARED) == (
        "qdisc replace dev data0 root pfifo limit 1000",
        "qdisc replace dev data0 root handle 1: htb default 10",
        "class replace dev data0 parent 1: classid 1:10 htb rate 400000000bit ceil 400000000bit "
        "burst 51200b cburst 51200b quantum 1514",
        "qdisc replace dev data0 parent 1:10 handle 10: bfifo limit 1500000",
    )


def test_commands() -> None:
    assert offload_command("data0") == ("ethtool", "-K", "data0", "tso", "off", "gso", "off", "gro", "off")
    assert qdisc_show_command("data0") == ("tc", "-j", "qdisc", "show", "dev", "data0")
    assert class_show_command("data0") == ("tc", "-d", "class", "show", "dev", "data0")


@pytest.mark.parametrize(
    ("rate_bps", "limit_bytes"),
    [(8_000, 65_536), (10_000_000, 65_536), (100_000_000, 375_000), (400_000_000, 1_500_000), (10**11, 375_000_000)],
)
def test_the_queue_is_30_ms_long(rate_bps: int, limit_bytes: int) -> None:
    assert leaf_limit_bytes(rate_bps) == limit_bytes


def test_payload_rate() -> None:
    assert payload_bytes_per_s(400_000_000) == pytest.approx(47_820_343, abs=1)


def test_what_tc_prints_is_read_back() -> None:
    assert parse_shape(QDISCS, CLASS) == DECLARED
    assert compare(DECLARED, parse_shape(QDISCS, CLASS)) == []


def test_an_unshaped_device() -> None:
    noqueue = [{"kind": "noqueue", "handle": "0:", "root": True, "refcnt": 2, "options": {}}]
    assert parse_shape(noqueue, "") is None
    assert parse_shape([], "") is None
    assert compare(DECLARED, None) == ["not shaped; declared is 400mbit"]


@pytest.mark.parametrize(
    ("there", "instead", "told"),
    [
        ("rate 400Mbit", "rate 100Mbit", "rate is 100mbit; declared is 400mbit"),
        ("ceil 400Mbit", "ceil 1Gbit", "ceil is 1gbit; declared is 400mbit"),
        ("rate 400Mbit", "rate 399999Kbit", "rate is 399.999mbit; declared is 400mbit"),
        ("linklayer ethernet burst 50Kb", "linklayer ethernet burst 51199b", "burst is 51.199kB; declared is 50KiB"),
        ("cburst 50Kb", "cburst 1Mb", "cburst is 1MiB; declared is 50KiB"),
        ("quantum 1514", "quantum 200000", "quantum is 200kB; declared is 1.514kB"),
    ],
)
def test_every_difference_is_told(there: str, instead: str, told: str) -> None:
    assert there in CLASS
    assert compare(DECLARED, parse_shape(QDISCS, CLASS.replace(there, instead))) == [told]


def test_a_missing_or_other_queue_is_told() -> None:
    assert compare(DECLARED, parse_shape(QDISCS[:1], CLASS)) == ["queue is 0B; declared is 1.5MB"]
    netem = [QDISCS[0], {"kind": "netem", "handle": "10:", "parent": "1:10", "options": {"limit": 1000}}]
    assert compare(DECLARED, parse_shape(netem, CLASS)) == [
        "queue is 0B; declared is 1.5MB",
        "netem holds 1000 frames; declared is no netem",
    ]


def test_what_bypasses_the_shaping_is_told() -> None:
    bypass = [{**QDISCS[0], "options": {**QDISCS[0]["options"], "default": "0"}}, QDISCS[1]]
    assert compare(DECLARED, parse_shape(bypass, CLASS)) == [
        "HTB's default class 0 (what it does not catch goes unshaped) is not the testbed's"
    ]
    second = CLASS + CLASS.replace("1:10", "1:20").replace("400M", "9G")
    assert compare(DECLARED, parse_shape(QDISCS, second)) == ["class htb 1:20 is not the testbed's"]


def test_an_unknown_form_is_an_error_and_not_a_match() -> None:
    with pytest.raises(ShapeError, match="tc printed a class this version cannot read"):
        parse_shape(QDISCS, CLASS.replace("quantum 1514 ", ""))
    with pytest.raises(ShapeError, match="tc printed the rate '400MBit'"):
        parse_shape(QDISCS, CLASS.replace("rate 400Mbit", "rate 400MBit"))


@pytest.mark.parametrize(
    ("rate_bps", "shown_bps"),
    [
        (8_001, 8_000),
        (999_999, 999_992),
        (1_234_567, 1_234_000),
        (10_500_000, 10_500_000),
        (34_359_738_368, 34_359_000_000),
        (40_000_000_008, 40_000_000_000),
        (99_999_999_999, 99_999_000_000),
    ],
)
def test_rates_are_rounded_as_tc_rounds_them(rate_bps: int, shown_bps: int) -> None:
    assert rate_as_shown(rate_bps) == shown_bps


@pytest.mark.parametrize(
    ("burst_bytes", "rate_bps", "shown_bytes"),
    [
        (1_514, 400_000_000, 1_450),
        (16_384, 400_000_000, 16_300),
        (50_001, 10_500_000, 50_001),
        (16_384, 123_456_789, 16_358),
        (1_048_577, 10_500_000, 1_048_576),
        (16_384, 34_359_738_368, 8_589),
        (51_200, 100_000_000_000, 37_500),
    ],
)
def test_bursts_are_rounded_as_tc_rounds_them(burst_bytes: int, rate_bps: int, shown_bytes: int) -> None:
    """Seen with iproute2 6.1."""
    assert bursts_as_shown(burst_bytes, rate_bps)[0] == shown_bytes


def test_newer_tc_loses_less_of_a_burst() -> None:
    """tc from 6.14 on rounds up to the kernel's 64 ns tick only: 3.2 bytes at 400 mbit."""
    assert bursts_as_shown(1_514, 400_000_000)[1] == 1_516


# As printed by iproute2 6.1 on Debian's cloud kernel for 10 mbit, 15 ms ± 1 ms, 5 % loss.
NETEM_QDISCS = json.loads(
    '[{"kind":"htb","handle":"1:","root":true,"refcnt":2,"options":{"r2q":10,"default":"0x10",'
    '"direct_packets_stat":0,"direct_qlen":1000}},'
    '{"kind":"netem","handle":"10:","parent":"1:10","options":{"limit":1337,"delay":{"delay":0.015,"jitter":0.001,'
    '"correlation":0},"loss-random":{"loss":0.05,"correlation":0},"ecn":false,"gap":0}},'
    '{"kind":"bfifo","handle":"20:","parent":"10:1","options":{"limit":65536}}]'
)
NETEM_CLASSES = (
    "class htb 1:10 root leaf 10: prio 0 quantum 1514 rate 10Mbit ceil 10Mbit linklayer ethernet "
    "burst 16Kb/1 mpu 0b cburst 16Kb/1 mpu 0b level 0 \nclass netem 10:1 parent 10: leaf 20: \n"
)
IMPAIRED = Shape(10_000_000, 16_384, impairment=Impairment(15_000, 1_000, 50_000))


def test_delay_and_loss_stand_over_the_same_queue() -> None:
    assert tc_lines("up0", IMPAIRED) == (
        "qdisc replace dev up0 root pfifo limit 1000",
        "qdisc replace dev up0 root handle 1: htb default 10",
        "class replace dev up0 parent 1: classid 1:10 htb rate 10000000bit ceil 10000000bit "
        "burst 16384b cburst 16384b quantum 1514",
        "qdisc replace dev up0 parent 1:10 handle 10: netem limit 1337 delay 15000us 1000us loss 5%",
        "qdisc replace dev up0 parent 10:1 handle 20: bfifo limit 65536",
    )


def test_shares_of_a_fault_stand_behind_delay_and_loss() -> None:
    impairment = Impairment(15_000, 1_000, 50_000, corrupt_ppm=10_000, duplicate_ppm=5_000, reorder_ppm=250_000)
    line = tc_lines("up0", Shape(10_000_000, 16_384, impairment=impairment))[3]
    assert line.endswith("delay 15000us 1000us loss 5% corrupt 1% duplicate 0.5% reorder 25%")


def test_netem_holds_all_that_is_under_way_however_small_the_frames() -> None:
    far = Shape(400_000_000, 51_200, impairment=Impairment(20_000))
    assert far.delayed_packets * 64 >= 400_000_000 / 8 * 0.02 + leaf_limit_bytes(400_000_000)
    assert Shape(8_000, 16_384, impairment=Impairment(1)).delayed_packets >= 1000
    assert Shape(8_000, 16_384).delayed_packets == 0


def test_delay_and_loss_are_read_back() -> None:
    assert parse_shape(NETEM_QDISCS, NETEM_CLASSES) == IMPAIRED
    assert compare(IMPAIRED, parse_shape(NETEM_QDISCS, NETEM_CLASSES)) == []


@pytest.mark.parametrize(
    ("there", "instead", "told"),
    [
        ('"delay": 0.015', '"delay": 0.02', "delay is 20ms; declared is 15ms"),
        ('"jitter": 0.001', '"jitter": 0', "jitter is 0s; declared is 1ms"),
        ('"loss": 0.05', '"loss": 0.06', "loss is 6%; declared is 5%"),
        ('"limit": 1337', '"limit": 100', "netem holds 100 frames; declared is 1337"),
        ('"limit": 65536', '"limit": 5000', "queue is 5kB; declared is 64KiB"),
        ('"gap": 0', '"gap": 5', "netem's gap 5 is not the testbed's"),
        ('"gap": 0', '"gap": 0, "duplicate": {"duplicate": 0.1}', "duplicate is 10%; declared is 0%"),
        ('"gap": 0', '"gap": 0, "corrupt": {"corrupt": 0.01, "correlation": 0}', "corrupt is 1%; declared is 0%"),
        ('"gap": 0', '"gap": 1, "reorder": {"reorder": 0.25, "correlation": 0}', "reorder is 25%; declared is 0%"),
        ('"gap": 0', '"gap": 0, "slot": {"min-delay": 1}', "netem's slot is not the testbed's"),
        (
            '"jitter": 0.001, "correlation": 0',
            '"jitter": 0.001, "correlation": 0.5',
            "netem's correlation of delay is not the testbed's",
        ),
    ],
)
def test_every_difference_of_delay_and_loss_is_told(there: str, instead: str, told: str) -> None:
    text = json.dumps(NETEM_QDISCS)
    assert there in text
    assert compare(IMPAIRED, parse_shape(json.loads(text.replace(there, instead)), NETEM_CLASSES)) == [told]


@pytest.mark.parametrize(
    ("delay_us", "shown_s", "same"),
    [
        (1_234_567, 1.23457, True),  # tc prints six digits
        (1_234_565, 1.23456, True),  # the kernel has a tick less
        (1_234_567, 1.23458, False),
        (999_999, 0.999999, True),
        (999_999, 0.999996, False),
    ],
)
def test_a_delay_of_seconds_is_compared_in_the_digits_that_tc_prints(delay_us: int, shown_s: float, same: bool) -> None:
    declared, found = Impairment(delay_us), parse_netem({"limit": 1, "delay": {"delay": shown_s}})[1]
    assert (compare_impairment(declared, found) == []) is same


def test_delay_that_is_not_there_is_told() -> None:
    without = Shape(10_000_000, 16_384)
    assert compare(IMPAIRED, without) == [
        "delay is 0s; declared is 15ms",
        "jitter is 0s; declared is 1ms",
        "loss is 0%; declared is 5%",
        "netem holds 0 frames; declared is 1337",
    ]
    assert compare(without, IMPAIRED)[-1] == "netem holds 1337 frames; declared is no netem"
