"""An object store that fails some operations, and serves the others."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.fault import parameter
from testbed.faults.parameters import container_here, joined, names, no_container_here, one_of, share
from testbed.faults.store_errors import Rule, missing, no_redirect
from testbed.faults.stores import StoreFault
from testbed.provision.testbed import Testbed
from testbed.suggestions import choices, did_you_mean
from testbed.topology.model import Topology
from testbed.units import format_share

OPERATIONS = ("put", "get", "delete", "list")
STATUS = {"500": 500, "503": 503, "timeout": 0}
TRIES = 200
"""Requests of one look; a fault with a small share needs several looks."""


def _operations(text: str) -> tuple[str, ...]:
    found = names(text)
    for each in found:
        if each not in OPERATIONS:
            raise ValueError(
                f"{each!r} is no operation; allowed are {choices(OPERATIONS)}{did_you_mean(each, OPERATIONS)}"
            )
    return found


@dataclass(frozen=True)
class ObjectstoreErrors(StoreFault):
    """A proxy in front of the server answers a share of the requests with an error, or does not answer them.

    PUT includes multipart uploads, and GET includes HEAD. Of several faults the first that takes a request decides.
    """

    kind: ClassVar[str] = "objectstore-errors"
    summary: ClassVar[str] = "the object store fails a share of the requests of some operations"
    deadline_s: ClassVar[float] = 60.0
    single: ClassVar[str] = "which also ask each other on the same port"

    operations: tuple[str, ...] = parameter("of put, get, delete and list, such as put,list", _operations, joined)
    status: str = parameter("500, 503 or timeout (no answer)", one_of(*STATUS), default="503")
    share: int = parameter("the share of these requests, such as 10%", share, format_share, default=1_000_000)

    @classmethod
    def lacking(cls) -> str:
        """See `Fault.lacking`."""
        return no_redirect()

    @classmethod
    def absent_from(cls, topology: Topology) -> str:
        """See `Fault.absent_from`."""
        stores = [host.name for host in topology.objectstores]
        return super().absent_from(topology) or no_container_here(topology, stores, cls.kind)

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        super().check(topology)
        container_here(topology, self.host, self.kind)

    @property
    def rule(self) -> Rule:
        """See `StoreFault.rule`."""
        return {"operations": list(self.operations), "status": STATUS[self.status], "share_ppm": self.share}

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: reads the redirection back, and sends requests until each operation has failed."""
        if absent := missing(testbed, self.host):
            return absent
        tries = 1 if self.share == 1_000_000 else TRIES
        for each in self.operations:
            seen = set()
            for status in testbed.objectstore.answers(each, tries):
                seen.add(status)
                if status == STATUS[self.status]:
                    break
            else:
                return f"{each} was answered with {', '.join(map(str, sorted(seen)))}"
        return None


FAULT = ObjectstoreErrors
