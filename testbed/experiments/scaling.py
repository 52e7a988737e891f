"""Brokers that join or leave: which partitions go where, so that every broker that stays has its share. Pure."""

from collections.abc import Sequence

from testbed.experiments.scene import Group


def blocks(partitions: range, hosts: Sequence[str]) -> dict[str, range]:
    """Host → its share of the partitions, one after the other; the first ones have one more where it does not come out
    even."""
    least, over = divmod(len(partitions), len(hosts))
    found, start = {}, 0
    for number, host in enumerate(hosts):
        stop = start + least + (number < over)
        found[host] = partitions[start:stop]
        start = stop
    return found


def joined(topic: str, partitions: range, there: Sequence[str], joining: Sequence[str]) -> list[Group]:
    """Each broker that is there gives the last of its partitions to those that join, until all have as many."""
    fair = blocks(partitions, [*there, *joining])
    found, spare = [], []
    for host, mine in blocks(partitions, there).items():
        keeps = mine[: len(fair[host])]
        found.append(Group(topic, keeps, (host,), (host,)))
        spare.append((host, mine[len(keeps) :]))
    wanted = [(host, len(fair[host])) for host in joining]
    return found + [Group(topic, part, (old,), (new,)) for old, new, part in _handed(spare, wanted)]


def left(topic: str, partitions: range, staying: Sequence[str], leaving: Sequence[str]) -> list[Group]:
    """Those that leave give all they have to those that stay, until all of these have as many."""
    before, after = blocks(partitions, [*staying, *leaving]), blocks(partitions, staying)
    found = [Group(topic, before[host], (host,), (host,)) for host in staying]
    wanted = [(host, len(after[host]) - len(before[host])) for host in staying]
    moved = _handed([(host, before[host]) for host in leaving], wanted)
    return found + [Group(topic, part, (old,), (new,)) for old, new, part in moved]


def shared_out(groups: Sequence[Group], size_bytes: int, inbound_bytes_per_s: float) -> list[Group]:
    """The same with bytes and what is written in proportion to their partitions."""
    whole = sum(len(group.partitions) for group in groups)
    return [
        Group(
            group.topic,
            group.partitions,
            group.current,
            group.target,
            size_bytes * len(group.partitions) // whole,
            inbound_bytes_per_s * len(group.partitions) / whole,
        )
        for group in groups
        if len(group.partitions)
    ]


def _handed(given: Sequence[tuple[str, range]], wanted: Sequence[tuple[str, int]]) -> list[tuple[str, str, range]]:
    """(from, to, partitions): what is given, dealt out in order to those that want so many."""
    found, lacking = [], dict(wanted)
    for old, part in given:
        start = 0
        for new, count in list(lacking.items()):
            taken = part[start : start + count]
            if len(taken):
                found.append((old, new, taken))
            lacking[new] -= len(taken)
            start += len(taken)
    return found
