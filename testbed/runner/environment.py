"""The class of environment a run was made in: only runs of one class are compared."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.probes.machine import fingerprint
from testbed.provision.testbed import Testbed

NIC_LOWEST, NIC_HIGHEST = 0.90, 1.10
"""Wider than what a run judges by: a canary of a second is coarser than a run's own measurement."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What the class is made of, and its short name."""

    fields: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The same for all environments whose fields are the same."""
        text = json.dumps(dict(self.fields), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def classify(machine: Mapping[str, Any], engine: str, storage_driver: str, image: str, nic: float) -> Environment:
    """The class of these; `nic` is the canary's share of the declared rate. Pure.

    Kafka and the topology are no part of it: they are what variants differ in.
    """
    network = "as declared" if NIC_LOWEST <= nic <= NIC_HIGHEST else "off its rate"
    return Environment(
        {**machine, "engine": engine, "storage_driver": storage_driver, "image": image, "network": network}
    )


def environment(testbed: Testbed, nic: float) -> Environment:
    """The class of environment that `testbed` stands in now."""
    engine = testbed.engine.info()
    return classify(
        fingerprint(), str(engine["ServerVersion"]), str(engine["Driver"]), testbed.state.digests["image"], nic
    )
