"""The forms of links and disks in a topology file: what a person may write of a NIC, an uplink, a disk."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from testbed.topology import rules
from testbed.topology.values import Burst, Delay, DiskBandwidth, DiskSize, Loss, Rate, Use, problem, text


class Surface(BaseModel):
    """What all forms have in common: no field beyond those named, no value turned into another kind."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class UplinkForm(Surface):
    """A rack's link to the core, shaped both ways; tx is what the rack sends."""

    rate: Annotated[Rate | None, Field(description="Rate both ways, such as 400mbit.")] = None
    tx_rate: Annotated[Rate | None, Field(description="Rate of what is sent; goes with rx_rate.")] = None
    rx_rate: Annotated[Rate | None, Field(description="Rate of what is received; goes with tx_rate.")] = None
    burst: Annotated[
        Burst | None,
        Field(description="Bytes that may pass at once, both ways. Left out: 1 ms of the rate, at least 16KiB."),
    ] = None
    tx_burst: Annotated[Burst | None, Field(description="Burst of what is sent.")] = None
    rx_burst: Annotated[Burst | None, Field(description="Burst of what is received.")] = None
    delay: Annotated[Delay | None, Field(description="How long what is sent is under way, one way.")] = None
    jitter: Annotated[Delay | None, Field(description="By how much that delay varies, up and down.")] = None
    loss: Annotated[Loss | None, Field(description="The share of sent frames that is lost, at random.")] = None
    rx_delay: Annotated[Delay | None, Field(description="How long what is received is under way, besides.")] = None
    rx_jitter: Annotated[Delay | None, Field(description="By how much that delay varies, up and down.")] = None
    rx_loss: Annotated[Loss | None, Field(description="The share of received frames that is lost.")] = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        for whole in ("rate", "burst"):
            sides = [name for name in (f"tx_{whole}", f"rx_{whole}") if name in self.model_fields_set]
            if whole in self.model_fields_set and sides:
                raise problem(
                    f"{whole} stands beside {' and '.join(sides)}; allowed: {whole} alone (both ways), "
                    f"or tx_{whole} and rx_{whole}"
                )
        return self


class NicForm(UplinkForm):
    """A NIC, shaped both ways. Fields left out are inherited: host, then role, then defaults."""

    name: Annotated[
        str | None,
        text(rules.nic_name_problem),
        WithJsonSchema({"type": "string", "pattern": rules.NIC_NAME, "default": "data0"}),
        Field(description="The interface's name inside the host; data0 unless given."),
    ] = None
    use: Annotated[
        Use | None,
        Field(description="What one of several NICs is for: replication, or data (all else; unless given)."),
    ] = None


class RackForm(Surface):
    """One rack; {} for one whose uplink is as fast as the machine is."""

    uplink: Annotated[UplinkForm | None, Field(description="The rack's link to the core, where it is shaped.")] = None


class DiskForm(Surface):
    """A file system of its own for a host's Kafka data."""

    size: Annotated[DiskSize | None, Field(description="How large it is: 100MB to 1024GiB.")] = None
    bandwidth: Annotated[
        DiskBandwidth | None, Field(description="Most bytes a second that are read, and that are written.")
    ] = None
