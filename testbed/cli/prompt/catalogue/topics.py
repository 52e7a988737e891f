"""Commands about topics: their places, and making, filling and deleting them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from results.render import NOTHING, table
from testbed.cli.prompt.grammar import PromptCommand, Values
from testbed.cli.prompt.session import Session
from testbed.errors import UsageError
from testbed.kafka.types import PartitionState, Reassignment, TopicPartition
from testbed.reassignment.lag import read_sizes
from testbed.units import format_size
from testbed.workload.preload import preload
from testbed.workload.records import HEADER_BYTES, Fill, Recipe

_SEED = 1
_LARGEST_RECORD_BYTES = 900_000
"""Below the default of `max.message.bytes`, 1 MiB, and of the client, 1 MB; both include the batch's header."""
_MOST_BYTES = 10 * 10**9
"""The most that one command writes: enough for any move, and no disk is filled by a typing error."""


def _topics(session: Session, values: Values) -> None:
    with session.testbed.admin() as admin:
        wanted = list(admin.topics()) if "topics" not in values else [values["topics"]]
        states, listed = admin.partitions(wanted), admin.reassignments(wanted)
        sizes = read_sizes(admin, [b.id for b in admin.cluster().brokers], wanted).largest if wanted else {}
    if not states:
        session.say("no topic")
    elif "topics" in values:
        header = ("PARTITION", "LEADER", "REPLICAS", "ISR", "ADDING", "REMOVING", "SIZE")
        session.say(table(header, partition_rows(states, listed, sizes)))
    else:
        header = ("TOPIC", "PARTITIONS", "REPLICAS", "LED BY", "SIZE", "OUT OF SYNC", "MOVING")
        session.say(table(header, topic_rows(states, listed, sizes)))


def topic_rows(
    states: Mapping[TopicPartition, PartitionState],
    listed: Mapping[TopicPartition, Reassignment],
    sizes: Mapping[TopicPartition, int],
) -> list[tuple[object, ...]]:
    """Return one row for each topic. Pure."""
    found: list[tuple[object, ...]] = []
    for topic in dict.fromkeys(tp.topic for tp in states):
        mine = {tp: state for tp, state in states.items() if tp.topic == topic}
        leaders = Counter("none" if state.leader is None else str(state.leader) for state in mine.values())
        replicas = sorted({len(state.replicas) for state in mine.values()})
        found.append(
            (
                topic,
                len(mine),
                ",".join(map(str, replicas)),
                " ".join(f"{leader}:{count}" for leader, count in sorted(leaders.items())),
                format_size(sum(sizes.get(tp, 0) for tp in mine), 4),
                sum(len(state.isr) < len(state.replicas) for state in mine.values()),
                sum(tp in listed for tp in mine),
            )
        )
    return found


def partition_rows(
    states: Mapping[TopicPartition, PartitionState],
    listed: Mapping[TopicPartition, Reassignment],
    sizes: Mapping[TopicPartition, int],
) -> list[tuple[object, ...]]:
    """Return one row for each partition of a topic. Pure."""
    return [
        (
            tp.partition,
            "none" if state.leader is None else state.leader,
            _ids(state.replicas),
            _ids(state.isr),
            _ids(listed[tp].adding) if tp in listed else NOTHING,
            _ids(listed[tp].removing) if tp in listed else NOTHING,
            format_size(sizes.get(tp, 0), 4),
        )
        for tp, state in states.items()
    ]


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers)) or NOTHING


def _create(session: Session, values: Values) -> None:
    name, partitions, replicas = values["create"], values["partitions"], values["replicas"]
    with session.testbed.admin() as admin:
        brokers = list(values.get("on") or [broker.id for broker in admin.cluster().brokers])
        if replicas > len(brokers):
            raise UsageError(f"replicas {replicas}: there are {len(brokers)} brokers for them, {_ids(brokers)}")
        admin.create_topic(name, round_robin(partitions, replicas, brokers))
    session.say(f"{name}: partitions {partitions}, replicas {replicas}, on brokers {_ids(brokers)}")


def round_robin(partitions: int, replicas: int, brokers: Sequence[int]) -> dict[int, list[int]]:
    """Return the replicas of each partition: leaders in turn, followers on the next brokers. Pure."""
    return {p: [brokers[(p + place) % len(brokers)] for place in range(replicas)] for p in range(partitions)}


def _delete(session: Session, values: Values) -> None:
    with session.testbed.admin() as admin:
        admin.delete_topic(values["delete"])
    session.say(f"{values['delete']}: deleted")


def _produce(session: Session, values: Values) -> None:
    topic, count, size = values["produce"], values["count"], values["×"]
    if size <= HEADER_BYTES:
        raise UsageError(f"a record of {size} B is too small: its header has {HEADER_BYTES} B, so give more")
    if size > _LARGEST_RECORD_BYTES:
        raise UsageError(f"a record of {format_size(size)} is too large; {format_size(_LARGEST_RECORD_BYTES)} at most")
    if count * size > _MOST_BYTES:
        raise UsageError(
            f"{count} records of {format_size(size)} are {format_size(count * size, 4)}; "
            f"one command writes {format_size(_MOST_BYTES)} at most"
        )
    with session.testbed.admin() as admin:
        partitions = [tp.partition for tp in admin.partitions([topic])]
    written = fills(topic, partitions, count, Recipe(size, _SEED))
    preload(session.testbed.bootstrap, written, acks=values.get("acks", "all"))
    session.say(f"{topic}: {count} records, {format_size(count * size, 4)}, acknowledged")


def fills(topic: str, partitions: Sequence[int], count: int, recipe: Recipe) -> list[Fill]:
    """Return the records of each partition: as evenly as possible, the first partitions get one more. Pure."""
    each, more = divmod(count, len(partitions))
    found = [Fill(topic, partitions[:more], each + 1, recipe), Fill(topic, partitions[more:], each, recipe)]
    return [fill for fill in found if fill.partitions and fill.records_per_partition]


_command = partial(PromptCommand, group="Topics")
COMMANDS = [
    _command("topics [TOPIC]", "every topic, or the partitions of one", _topics, "topics\ntopics orders"),
    _command(
        "create NEW partitions COUNT replicas COUNT [on BROKERS]",
        "make a topic; its replicas are spread over the brokers",
        _create,
        "create orders partitions 6 replicas 2\ncreate orders partitions 6 replicas 1 on b1",
        shown="create TOPIC partitions COUNT replicas COUNT [on BROKERS]",
    ),
    _command(
        "produce TOPIC COUNT ×|x SIZE [acks ACKS]",
        "write incompressible records, evenly over the partitions, acknowledged by all replicas in sync (or acks 1)",
        _produce,
        "produce orders 1000 × 1KiB\nproduce orders 1000 x 1KiB",
    ),
    _command("delete TOPIC", "delete a topic", _delete),
]
