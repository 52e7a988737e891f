"""The live load of an experiment: clients that write to its partitions and read them before, during and after."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from results.contract.relocation import Storage
from results.contract.verdict import DIRECTIONS, Direction
from testbed.errors import UsageError
from testbed.experiments.layout import Layout
from testbed.experiments.load_shape import LoadShape, in_logs
from testbed.network.shape import payload_bytes_per_s
from testbed.probes.brokers import sampled_nic
from testbed.probes.machine import wait_calm
from testbed.probes.recorder import Recorder
from testbed.topology.host import DeclaredHost
from testbed.topology.links import Link, Nic, NicUse
from testbed.units import format_byte_rate
from testbed.wait import WaitTimeout, wait_for
from testbed.workload.connections import sending
from testbed.workload.outcome import ProcessResult, WorkloadResult
from testbed.workload.spec import ConsumerSpec, ProducerSpec, Spec
from testbed.workload.workload import Workload

DEFAULT = LoadShape()
PRODUCERS_WITH_FOLLOWERS = 2
SHARED_ANSWER_S = 1.0
"""The longest usual acknowledgement where the write-ahead log is in an object store: it collects for 0.25 s."""
GIVE_UP_S, SHARED_GIVE_UP_S = 30.0, 120.0
"""Seconds after which a record without an acknowledgement is in doubt. A broker on shared storage that is killed is
replaced after some 30 s."""
LOAD_LINGER_MS = 100.0
"""librdkafka sends each batch separately, and wakes every follower and consumer for it. With 5 ms, as Java lingers,
1 MB/s in records of 1 KiB kept two cores 98 % busy with requests; with 50 ms 39 %, with 100 ms, full batches, 25 %."""
SHARED_LINGER_MS = 300.0
"""The same on shared storage: more than the 0.25 s for which an acknowledgement waits. When requests come faster than
they are answered, librdkafka polls without a pause and keeps one core busy. Eight producers of 25 to 50 kB/s that
lingered for 100 ms kept two cores 65 % busy."""
ABORT_EVERY = 10
"""One transaction in so many is aborted on purpose: no reader may get its records, whichever broker leads by then. A
tenth of the records leaves the acknowledgements of the others what they are."""
WARM_BUSY, WARM_LOOK_S, WARM_S = 0.55, 3.0, 40.0
ALONE_S = 8.0
"""Seconds for which the load runs alone before and after the move. A report compares its latencies with the move's."""

CAUGHT_UP_S, USUAL_S = 20.0, 1.0
"""Unthrottled moves back left 2.4 to 4.2 s of records without an answer; they came within 1 s."""
MOST_OF_NIC, ROUNDED = 0.9, 0.95
"""The largest part of a NIC that a load may take: the rest is left for the move, and for the headers of records. A rate
of two digits that a message names is rounded up by less than 5 %."""


def _halved(layout: Layout) -> Layout:
    groups = (replace(group, inbound_bytes_per_s=group.inbound_bytes_per_s / 2) for group in layout.throttled)
    return replace(layout, throttled=tuple(groups))


def carries(link: Link, direction: Direction) -> float:
    """Return the payload that a link carries in a direction, B/s."""
    return payload_bytes_per_s(link.tx_bps if direction == "transmit" else link.rx_bps)


def client_rates(layout: Layout) -> Mapping[tuple[str, Direction], float]:
    """Return the rates between each leader and the load's clients: they write each byte once, and read it once. Pure.

    The result is host and direction → B/s.
    """
    found: dict[tuple[str, Direction], float] = {}
    for group in layout.throttled:
        for direction in DIRECTIONS:
            found[group.leader, direction] = found.get((group.leader, direction), 0.0) + group.inbound_bytes_per_s
    return found


def load_shares(
    layout: Layout, brokers: Sequence[DeclaredHost], storage: Storage
) -> Mapping[tuple[str, str, Direction], float]:
    """Return the part of each NIC that what clients write takes while partitions move: host, NIC, direction → part.

    A leader receives each byte once. It sends it to the consumer, to each follower, and to an object store. Pure.
    """
    hosts, found = {host.name: host for host in brokers}, dict[tuple[str, str, Direction], float]()

    def add(nic: Nic, name: str, direction: Direction, rate_bytes_per_s: float) -> None:
        place = name, nic.name, direction
        found[place] = found.get(place, 0.0) + rate_bytes_per_s / carries(nic, direction)

    for (name, direction), rate in client_rates(layout).items():
        add(hosts[name].nic_for(NicUse.DATA)[1], name, direction, rate)
    for group in layout.throttled:
        leader, rate = hosts[group.leader], group.inbound_bytes_per_s
        if storage != "disk":
            add(leader.nic_for(NicUse.DATA)[1], leader.name, "transmit", rate)
        # Nothing is copied between the brokers of AutoMQ.
        for follower in (*group.in_sync, *group.adding) if storage != "automq" else ():
            add(sampled_nic(leader), leader.name, "transmit", rate)
            add(sampled_nic(hosts[follower]), follower, "receive", rate)
    return found


def check_load(layout: Layout, shape: LoadShape, brokers: Sequence[DeclaredHost], storage: Storage) -> None:
    """Raise `UsageError` when what clients write takes almost all of a NIC, or more: the move would not end."""
    shares = load_shares(in_logs(layout, shape), brokers, storage)
    if not shares:
        return
    (host, nic, direction), share = max(shares.items(), key=lambda each: each[1])
    if share > MOST_OF_NIC:
        inbound = format_byte_rate(layout.inbound_bytes_per_s, 3)
        raise UsageError(
            f"inbound is {inbound}, which clients write and read, and followers copy: {nic} of {host} needs "
            f"{share:.0%} of what it carries, {direction}: less than a tenth is left for the move; lower inbound to "
            f"{format_byte_rate(ROUNDED * layout.inbound_bytes_per_s * MOST_OF_NIC / share, 2)} or less, or take a "
            "topology with faster NICs"
        )


def load_specs(layout: Layout, token: str, shape: LoadShape = DEFAULT, *, answer_s: float = 0.0) -> list[Spec]:
    """Return producers for the throttled groups with an inbound rate, and a consumer of all these groups. Pure.

    Each producer has the connections and batches that its rate needs when an acknowledgement takes `answer_s` seconds;
    see `testbed/workload/connections.py`.
    A broker answers the requests of one connection in order, and each request has one batch. With followers in sync the
    broker waits for these followers, which are busy with the move. Several producers therefore share such a group.
    """
    written = [group for group in layout.throttled if group.inbound_bytes_per_s]
    all_partitions = sum(len(group.partitions) for group in written)
    producers: list[Spec] = []
    for group in written:
        number = min(PRODUCERS_WITH_FOLLOWERS if group.in_sync else 1, len(group.partitions))
        for part in range(number):
            partitions = tuple(group.partitions)[part::number]
            rate = group.inbound_bytes_per_s * len(partitions) / len(group.partitions)
            sent = sending(rate, len(partitions), answer_s, transactional=shape.transaction_s is not None)
            producers.append(
                ProducerSpec(
                    f"producer-{len(producers) + 1}",
                    group.topic,
                    partitions,
                    rate,
                    record_bytes=shape.record_bytes,
                    sizes=shape.sizes,
                    keys=shape.keys * len(partitions) // all_partitions,
                    skew=shape.skew,
                    compression=shape.compression,
                    redundancy=shape.redundancy,
                    transaction_s=shape.transaction_s,
                    abort_every=ABORT_EVERY if shape.transaction_s else 0,
                    linger_ms=SHARED_LINGER_MS if answer_s else LOAD_LINGER_MS,
                    batch_bytes=sent.batch_bytes,
                    connections=sent.connections,
                    give_up_s=SHARED_GIVE_UP_S if answer_s else GIVE_UP_S,
                )
            )
    if not producers:
        return []
    topics = tuple(dict.fromkeys(group.topic for group in written))
    return [*producers, ConsumerSpec("consumer-1", topics, f"testbed-{token}")]


class ClientLoad:
    """The producers and the consumer of a layout. Without inbound rates there is no load.

    With `rises` the load begins with half of its rate. `rise` then starts the producers of the other half.
    `networks` are the client hosts behind whose NICs the clients run; see `Workload`.
    """

    def __init__(
        self,
        bootstrap: Sequence[str],
        layout: Layout,
        token: str,
        seed: int,
        recorder: Recorder,
        *,
        shape: LoadShape = DEFAULT,
        rises: bool = False,
        networks: Mapping[str, Sequence[str]] | None = None,
        answer_s: float = 0.0,
    ) -> None:
        self._recorder = recorder
        specs = load_specs(_halved(layout) if rises else layout, token, shape, answer_s=answer_s)
        self._more: Workload | None = None
        if rises and specs:
            first = len(specs) + 1
            more = [replace(spec, name=f"more-{spec.name}") for spec in specs if isinstance(spec, ProducerSpec)]
            self._more = Workload(
                bootstrap, more, seed + first, recorder.add, recorder.event, first_producer=first, networks=networks
            )
        self._workload: Workload | None = None
        if specs:
            others = None if self._more is None else self._more.envelopes
            self._workload = Workload(
                bootstrap, specs, seed, recorder.add, self._on_event, networks=networks, others=others
            )
        self.result: WorkloadResult | None = None
        """The result of all clients after the load's stop; None without a load."""

    @property
    def idle(self) -> bool:
        """Whether there is no load."""
        return self._workload is None

    def __enter__(self) -> "ClientLoad":
        if self._workload is not None:
            self._workload.start()
        return self

    def __exit__(self, *_error: object) -> None:
        # The consumer ends last: it waits for what its own load's producers wrote while nothing else comes.
        rest: tuple[ProcessResult, ...] = ()
        try:
            if self._more is not None:
                rest = self._more.stop().processes
        finally:
            if self._workload is not None:
                self.result = WorkloadResult((*self._workload.stop().processes, *rest))

    def rise(self) -> None:
        """Start the producers of the second half of the load."""
        if self._more is not None:
            self._more.start()

    def warm(self) -> None:
        """Wait until brokers and clients need no more CPU than in the long run, `WARM_S` seconds at most.

        A new broker compiles its code: three brokers kept two cores 70 to 100 % busy for half a minute, and 35 to 40 %
        afterwards. Neither the move nor the time before it, with which it is compared, may include this.
        """
        if self._workload is not None and not wait_calm(WARM_BUSY, WARM_LOOK_S, WARM_S):
            busy = f"still above {WARM_BUSY:.0%} busy after {WARM_S:g} s of load"
            self._recorder.event("note", "the machine did not become calm", {"why": busy})

    def alone(self, name: str) -> None:
        """Mark an instant, and let the load run alone for `ALONE_S`."""
        self.mark(name)
        if not self.idle:
            threading.Event().wait(ALONE_S)  # the load is measured for this time: there is no condition to wait for

    def catch_up(self) -> None:
        """Wait until the producers have the answers that a move without a throttle delayed, `CAUGHT_UP_S` at most.

        A load that stops before could not show whether the brokers took the declared rate.
        """
        if self._workload is not None:
            try:
                wait_for(self._workload.behind_s, lambda behind: behind <= USUAL_S, CAUGHT_UP_S, 0.2, "answers")
            except WaitTimeout as error:
                behind = f"{error.last_seen:.1f} s of records had no answer after {CAUGHT_UP_S:g} s"
                self._recorder.event("note", "the load did not catch up", {"why": behind})

    def mark(self, name: str) -> None:
        """Mark an instant."""
        if self._workload is not None:
            self._workload.mark(name)

    def _on_event(self, kind: str, name: str, detail: Mapping[str, Any]) -> None:
        if kind == "load.mark":
            kind, name = f"load.{name}", "load"
        self._recorder.event(kind, name, detail)
