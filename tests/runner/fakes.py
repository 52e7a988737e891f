"""A slot executor that makes nothing, counts everything, and can be killed at any point."""

from testbed.errors import KafkaStuck
from testbed.runner.campaign import Campaign
from testbed.runner.journal import CanaryReading, RunDone
from testbed.runner.variant import Variant


class Killed(BaseException):
    """As kill -9: nothing of ours catches it."""


def quiet(_text):
    """Take progress and show nothing."""


def campaign(labels="AB", repeats=3, seed=7, **other):
    variants = tuple(Variant(label, "kip73-two-node") for label in labels)
    fields = {
        "id": "20261121T200000Z-sweep-0a1b2c",
        "command": "sweep",
        "store": "/nowhere",
        "measures": ("move-seconds",),
        "threshold": 0.03,
        "topology_digests": tuple("0" for _ in labels),
        **other,
    }
    return Campaign(variants=variants, repeats=repeats, seed=seed, **fields)


class FakeExecutor:
    """Runs take `seconds` of a clock that only they advance, and are stopped at their time limit.

    `store` survives a kill, as a store does.

    `verdict` is that of all runs, or a function of a variant's label. A run that fails breaks `criterion`.
    """

    def __init__(
        self, store=None, value=lambda variant, number: 10.0, fail=lambda variant, number: None, verdict="pass"
    ):
        self.store = {} if store is None else store
        self.made = []
        self.canaries = 0
        self.now = 0.0
        self.seconds = {"A": 10.0, "B": 20.0}
        self.value, self.fail, self.verdict = value, fail, verdict
        self.criterion = "records-intact"
        self.logged = lambda variant: None
        self.ended = lambda variant: True
        self.reading = {"cpu": 1.0, "fsync": 0.001, "nic": 1.0, "transfer": 1.0}
        self.point = lambda name: None

    def clock(self):
        return self.now

    def canary(self, variant):
        self.point("canary begins")
        self.canaries += 1
        self.point("canary ends")
        return CanaryReading(dict(self.reading), "class-1", {"cores": 2})

    def run(self, variant, begun):
        self.point("run begins")
        number = len(self.made)
        self.made.append(variant.label)
        seconds = self.seconds.get(variant.label, 10.0)
        limit_s = seconds if variant.limit_s is None else variant.limit_s
        self.now += min(seconds, limit_s)
        late = KafkaStuck(f"{begun.run_id} was not done after {limit_s:g} s") if seconds > limit_s else None
        error = self.fail(variant.label, number) or late
        if error is not None:
            raise error
        self.point("run is measured")
        verdict = self.verdict(variant.label) if callable(self.verdict) else self.verdict
        failed = (self.criterion,) if verdict == "fail" else ()
        values = {"move-seconds": self.value(variant.label, number)}
        kept = () if failed or verdict == "inconclusive" else (self.criterion,)
        logged, ended = self.logged(variant.label), self.ended(variant.label)
        done = RunDone(begun.slot, begun.run_id, verdict, values, failed, "jars", kept=kept, logged=logged, ended=ended)
        self.store[begun.run_id] = done
        self.point("run is committed")
        return done

    def committed(self, begun):
        return self.store.get(begun.run_id)
