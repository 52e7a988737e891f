"""Keys, headers and timestamps of delivered records, against those that their producers gave them. Pure."""

from collections.abc import Mapping, Sequence

import numpy as np

from testbed.workload.records import (
    BROKER_TIME,
    Envelope,
    EnvelopeFlaw,
    Flaw,
    Headers,
    Ints,
    ReadRecords,
    compare_envelopes,
    timestamp_ms,
)

EnvelopeRow = list[int | str]
"""The topic's number, the partition, the producer, the flaw, the number of records with it, and the first one's offset
and detail."""
_NO_PRODUCER = -1


def envelope_rows(
    topics: Sequence[int] | Ints,
    partitions: Sequence[int],
    found: ReadRecords,
    heads: Headers,
    envelopes: Mapping[int, Envelope],
) -> tuple[list[EnvelopeRow], int]:
    """Return the flawed envelopes of records as rows, and the number of records that were compared.

    `envelopes` has the rule of each producer. Records of other producers are not compared, and neither are records with
    a flawed value: their producer is not known. A timestamp of the broker has a row of its own, as only the topic's
    configuration says whether it is a flaw.
    """
    producers = np.where(heads.sound(), heads.producers, _NO_PRODUCER)
    by_broker = (np.array(found.times_ms, np.int64) == BROKER_TIME) & (heads.times_us != 0)
    of_rule: dict[Envelope, list[int]] = {}
    for producer, envelope in envelopes.items():
        of_rule.setdefault(envelope, []).append(producer)
    flaws: list[EnvelopeFlaw] = []
    compared = 0
    for envelope, of in of_rule.items():
        numbers = np.flatnonzero(np.isin(producers, of))
        compared += len(numbers)
        flaws += compare_envelopes(envelope, found, heads, numbers, broker_times=True)
        flaws += [
            EnvelopeFlaw(number, Flaw.BROKER_TIME, f"not {timestamp_ms(int(heads.times_us[number]))} ms")
            for number in numbers[by_broker[numbers]].tolist()
        ]
    rows: dict[tuple[int, int, int, Flaw], EnvelopeRow] = {}
    for each in flaws:
        number = each.number
        key = int(topics[number]), partitions[number], int(producers[number]), each.flaw
        row = rows.get(key)
        if row is None:
            rows[key] = [*key, 1, found.offsets[number], each.detail]
        else:
            row[4] = int(row[4]) + 1
    return list(rows.values()), compared
