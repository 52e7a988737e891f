"""Scenes of a move, and how its bytes flow: shared fairly among all ends whose quota they pass, in small steps.

Followers in sync keep up whatever the quota.
"""

from dataclasses import dataclass

import numpy as np

from results.contract.move import Fetch
from tests.results.synthetic import MIB, PAYLOAD, F

STEP_S = 0.05
SHARE = 0.985
"""What a tuned follower makes of its quota."""


@dataclass(frozen=True)
class Group:
    """Partitions of one topic: leader and followers in sync before, whom they are sent to, bytes and inbound of all."""

    topic: str
    partitions: int
    leader: str
    in_sync: tuple[str, ...]
    adding: tuple[str, ...]
    bytes: float
    inbound: float = 0.0
    leader_leaves: bool = True


@dataclass(frozen=True)
class Scene:
    """A move. `quotas` are (second of the change, quota from then on); `restarts` (host, left, back, as planned)."""

    experiment: str
    brokers: tuple[str, ...]
    groups: tuple[Group, ...]
    quotas: tuple[tuple[float, float], ...] = ((0.0, 10e6),)
    change_s: float = 0.4
    restarts: tuple[tuple[str, float, float, bool], ...] = ()
    real_quota: tuple[tuple[str, float, float, float], ...] = ()
    """(host, from, to, quota): what a broker really holds itself to, whatever was set."""
    told_quota: bool = True
    """Whether the brokers describe what they really have."""
    unlisted: tuple[tuple[str, float, float, int], ...] = ()
    """(host, from, to, replicas): what a broker's lists lack."""
    flapping: tuple[str, float] | None = None
    """(host, second): a follower falls out of the ISR there, and comes back."""
    wildcard: bool = False
    stuck: tuple[float, float] | None = None
    """(noticed at, seconds without progress)."""
    load_held: bool = True
    lost_live: int = 0
    latency_us: float = 4000.0
    silent: tuple[float, float] | None = None
    gap: tuple[str, float, float] | None = None
    without: tuple[str, ...] = ()
    fetch: Fetch = "tuned"
    response: int = MIB
    nic_rate: float = PAYLOAD
    burst: float = 0.0
    """Bytes of the first response, at once."""
    cycle_s: float = 0.0
    """A leader sends twice its quota for half of each cycle and then nothing, as it does to several followers."""
    model_factor: float = 1.0
    nic_bound: bool = False
    rests: tuple[tuple[float, float], ...] = ()
    """(from, to): nothing is listed, and so nothing that is throttled is copied. Of a move in steps."""
    batches_s: tuple[float, ...] = ()
    resets: tuple[str, ...] = ()
    """Hosts whose broker's counters began anew in the middle of the move."""
    seed: int = 3
    token: str = "scene0"


class Flowing:
    """Cumulative bytes of each flow over time, as the brokers' logs have them."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.t = [0.0]
        keys = [(g, f) for g in scene.groups for f in g.adding]
        left = {key: key[0].bytes for key in keys}
        self.sent: dict[tuple[Group, str], list[float]] = {key: [0.0] for key in keys}
        self.done_at: dict[Group, float] = {}
        burst = scene.burst
        while len(self.done_at) < sum(bool(g.adding) for g in scene.groups) and self.t[-1] < 600:
            now = self.t[-1]
            live = [key for key in keys if key[0] not in self.done_at]
            rates = self._shared(live, now)
            for key in keys:
                grown = 0.0
                if key in rates:
                    grown = rates[key] * STEP_S + burst
                    burst = 0.0
                    left[key] += key[0].inbound * STEP_S - grown
                self.sent[key].append(self.sent[key][-1] + grown)
            self.t.append(now + STEP_S)
            for group in scene.groups:
                open_ = group.adding and group not in self.done_at
                if open_ and all(left[group, f] <= 0 for f in group.adding):
                    self.done_at[group] = self.t[-1]
        self.end_s = self.t[-1]
        self._instants = np.array(self.t)
        self._sent = {key: np.array(sent) for key, sent in self.sent.items()}

    def quota(self, host: str, now: float) -> float:
        for at_host, begin, end, quota in self.scene.real_quota:
            if at_host == host and begin <= now < end:
                return quota
        return [quota for at, quota in self.scene.quotas if at <= now][-1]

    def turn(self, now: float) -> float:
        """What a leader makes of its quota now."""
        cycle = self.scene.cycle_s
        return 1.0 if not cycle else 2.0 if now % cycle < cycle / 2 else 0.0

    def _shared(self, live: list[tuple[Group, str]], now: float) -> dict[tuple[Group, str], float]:
        down = {host for host, left, back, _ in self.scene.restarts if left <= now < back}
        room: dict[tuple[str, str], float] = {}
        for group in self.scene.groups:
            kept = group.inbound * len(group.in_sync) if group not in self.done_at else 0.0
            end = (group.leader, "transmit")
            room[end] = room.get(end, SHARE * self.quota(group.leader, now) * self.turn(now)) - kept
            for follower in group.in_sync if self.scene.wildcard else ():
                room[follower, "receive"] = room.get((follower, "receive"), SHARE * self.quota(follower, now)) - kept
        for _, follower in live:
            room.setdefault((follower, "receive"), SHARE * self.quota(follower, now))
        room = {end: min(max(0.0, left), self.scene.nic_rate / F) for end, left in room.items()}
        open_ = {key for key in live if not down & {key[0].leader, key[1]}}
        if any(begin <= now < end for begin, end in self.scene.rests):
            open_ = set()
        rates: dict[tuple[Group, str], float] = {}
        while open_:
            users = {end: [k for k in open_ if end in ends_of(k)] for end in room}
            tightest = min((e for e in users if users[e]), key=lambda e: room[e] / len(users[e]))
            share = room[tightest] / len(users[tightest])
            for key in users[tightest]:
                rates[key] = share
                open_.discard(key)
                for end in ends_of(key):
                    room[end] = max(0.0, room[end] - share)
        return rates

    def at(self, group: Group, follower: str, now: float) -> float:
        return float(np.interp(now, self._instants, self._sent[group, follower]))


def ends_of(key: tuple[Group, str]) -> tuple[tuple[str, str], tuple[str, str]]:
    return (key[0].leader, "transmit"), (key[1], "receive")
