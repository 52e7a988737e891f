"""The form of a topology file: the fields that a user may write, with units, and no other field.

These models check each value on its own. `resolve` and `rules` check what needs two values (an unknown rack,
two equal node ids). Editors show the descriptions of this module through the JSON schema.
"""

from typing import Annotated, Any, Self

from pydantic import Discriminator, Field, Tag, model_validator

from results.contract.document import refusal
from testbed.form import Form, editor_schema, optional
from testbed.suggestions import choices
from testbed.topology import jvm, rules
from testbed.topology.host import Role
from testbed.topology.inventory import InventoryForm, NicAddress, NicDevice, Provision, SshForm
from testbed.topology.machines import MAX_MACHINES, MachineForm, Mtu
from testbed.topology.model import TopologyError
from testbed.topology.values import (
    AutomqPath,
    Burst,
    Collector,
    Cpus,
    Delay,
    Description,
    DiskBandwidth,
    DiskSize,
    Heap,
    HostName,
    HostRole,
    ImageName,
    JvmFlag,
    KafkaPath,
    KafkaVersion,
    Loss,
    ManagerPath,
    NicName,
    NodeId,
    Properties,
    RackName,
    RackOfHost,
    Rate,
    TopologyName,
    Use,
)
from testbed.yaml_document import FieldPath, FileKind


class UplinkForm(Form):
    """A rack's link to the core, shaped both ways; tx is what the rack sends."""

    rate: Rate | None = optional("Rate both ways, such as 400mbit.")
    tx_rate: Rate | None = optional("Rate of what is sent; goes with rx_rate.")
    rx_rate: Rate | None = optional("Rate of what is received; goes with tx_rate.")
    burst: Burst | None = optional(
        "Bytes that may pass at once, both ways. Left out: 1 ms of the rate, at least 16KiB."
    )
    tx_burst: Burst | None = optional("Burst of what is sent.")
    rx_burst: Burst | None = optional("Burst of what is received.")
    delay: Delay | None = optional("How long what is sent is under way, one way.")
    jitter: Delay | None = optional("By how much that delay varies, up and down.")
    loss: Loss | None = optional("The share of sent frames that is lost, at random.")
    rx_delay: Delay | None = optional("How long what is received is under way, besides.")
    rx_jitter: Delay | None = optional("By how much that delay varies, up and down.")
    rx_loss: Loss | None = optional("The share of received frames that is lost.")

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        for whole in ("rate", "burst"):
            sides = [name for name in (f"tx_{whole}", f"rx_{whole}") if name in self.model_fields_set]
            if whole in self.model_fields_set and sides:
                raise refusal(
                    f"{whole} and {' and '.join(sides)} are both given; allowed: {whole} alone (both ways), "
                    f"or tx_{whole} and rx_{whole}"
                )
        return self


class NicForm(UplinkForm):
    """A NIC, shaped both ways. Fields left out are inherited: host, then role, then defaults."""

    name: NicName | None = optional("The interface's name inside the host; data0 unless given.")
    use: Use | None = optional("What one of several NICs is for: replication, or data (all else; unless given).")
    device: NicDevice | None = optional("With provision: inventory, the machine's network device to shape.")
    address: NicAddress | None = optional("With provision: inventory, the device's address; read from it if left out.")


class RackForm(Form):
    """One rack; {} for one whose uplink is as fast as the machine is."""

    uplink: UplinkForm | None = optional("The rack's link to the core, where it is shaped.")


class DiskForm(Form):
    """A file system of its own for a host's Kafka data."""

    size: DiskSize | None = optional("How large it is: 100MB to 1024GiB.")
    bandwidth: DiskBandwidth | None = optional("Most bytes a second that are read, and that are written.")


_RACKS_LISTED, _RACKS_MAPPED = "racks: a list", "racks: a mapping"


def _form_of_racks(value: Any) -> str:
    return _RACKS_MAPPED if isinstance(value, dict) else _RACKS_LISTED


class JvmForm(Form):
    """The JVM of Kafka. What is left out is inherited: host, role, whole cluster; then the testbed's own values."""

    heap: Heap | None = optional("Its heap, first and largest: a size, or -Xms and -Xmx as in KAFKA_HEAP_OPTS.")
    gc: Collector | None = optional("Its garbage collector; serial unless given.")
    flags: list[JvmFlag] | None = Field(
        None, max_length=jvm.MAX_FLAGS, description="More of its flags, such as -XX:+UseNUMA."
    )


class KafkaForm(Form):
    """Which Kafka, and how it is set up. What is left out is inherited: host, role, whole cluster."""

    version: KafkaVersion | None = optional("Kafka release, all three numbers: 4.3.1 (or 4.3.0-rc1).")
    path: KafkaPath | None = optional(
        "Instead of version: a release tarball or a folder with a build, relative to this file."
    )
    properties: Properties | None = optional("Properties as in server.properties; merged one by one when inherited.")
    jvm: JvmForm | None = optional("Heap, garbage collector and flags of its JVM.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.version is not None and self.path is not None:
            raise refusal("path and version are both given; allowed: one of the two")
        return self


Nics = Annotated[dict[NicName, NicForm], Field(min_length=1, max_length=rules.MAX_NICS)]
_Listed = Annotated[list[RackName], Field(min_length=1, max_length=rules.MAX_RACKS)]
_Mapped = Annotated[dict[RackName, RackForm], Field(min_length=1, max_length=rules.MAX_RACKS)]
Racks = Annotated[
    Annotated[_Listed, Tag(_RACKS_LISTED)] | Annotated[_Mapped, Tag(_RACKS_MAPPED)], Discriminator(_form_of_racks)
]


class HardwareForm(Form):
    """NICs, disk and CPUs of hosts."""

    nic: NicForm | None = optional("The NIC of each of these hosts, where no nearer level says else.")
    nics: Nics | None = optional("Several NICs of each of these hosts, by name; in place of nic.")
    disk: DiskForm | None = optional("The disk of each of these hosts, for Kafka's data or for objects.")
    cpus: Cpus | None = optional("How many CPUs the processes of each of these hosts share.")


class DefaultsForm(HardwareForm):
    """What every host starts from. (Kafka's settings for all hosts stand in kafka, at the top.)"""


class KafkaRoleForm(HardwareForm):
    """What every host of this role has, unless the host says else."""

    kafka: KafkaForm | None = optional("Kafka's version and properties for this role.")


class ClientRoleForm(Form):
    """What every client has, unless the host says else. Clients run no Kafka."""

    nic: NicForm | None = optional("The NIC of clients.")
    nics: Nics | None = optional("Several NICs of clients, by name.")
    cpus: Cpus | None = optional("How many CPUs each client has.")


class ObjectStoreRoleForm(HardwareForm):
    """What every object store has, unless the host says else. Object stores run no Kafka."""


class RolesForm(Form):
    """Settings by role. A host takes those of its own role only: both is a role of its own."""

    broker: KafkaRoleForm | None = optional("Hosts that hold partitions.")
    controller: KafkaRoleForm | None = optional("Hosts that vote in the metadata quorum.")
    both: KafkaRoleForm | None = optional("Hosts that are broker and controller.")
    client: ClientRoleForm | None = optional("Hosts without Kafka, for load.")
    objectstore: ObjectStoreRoleForm | None = optional("Hosts that run the object store.")


class HostForm(Form):
    """One host."""

    role: HostRole = Field(
        description="broker holds partitions, controller votes, both does both; the others run no Kafka."
    )
    rack: RackOfHost | None = optional("One of racks; may be left out when there is only one.")
    nic: NicForm | None = optional("This host's NIC, where it differs.")
    nics: Nics | None = optional("Several NICs by name, the one for data first; in place of nic.")
    disk: DiskForm | None = optional("This host's disk; not for clients.")
    cpus: Cpus | None = optional("How many CPUs this host's processes share; all of the machine's unless given.")
    kafka: KafkaForm | None = optional("This host's Kafka, where it differs; for hosts that run it.")
    node_id: NodeId | None = optional("Kafka's node.id. Left out: counted from 1 in the file's order, past given ones.")
    ssh: SshForm | None = optional("With provision: inventory, how this machine is reached.")
    machine: RackOfHost | None = optional("One of machines. Left out: the hosts are spread over them evenly.")


class RemoteStorageForm(Form):
    """Every broker has remote log storage (KIP-405) on the object stores; topics that set it use it."""

    manager: ManagerPath | None = optional("A folder with another RemoteStorageManager's jars, relative to this file.")


class AutomqForm(Form):
    """AutoMQ in place of Apache Kafka. With neither path nor image: what TESTBED_AUTOMQ in the environment names."""

    path: AutomqPath | None = optional("A release tarball or its unpacked folder, relative to this file.")
    image: ImageName | None = optional("A container image with AutoMQ in it.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.path is not None and self.image is not None:
            raise refusal(rules.BOTH_SOURCES)
        return self


class SoftwareForm(Form):
    """Other software than Apache Kafka on the hosts that run Kafka."""

    automq: AutomqForm = Field(description="AutoMQ; in place of kafka.version and kafka.path.")


class TopologyForm(Form):
    """Hosts, racks and shaped NICs of a Kafka testbed. Documented in docs/topologies.md."""

    name: TopologyName = Field(description="The topology's name, best that of its file.")
    description: Description = Field("", description="One line for people.")
    provision: Provision = Field(
        "containers",
        description="containers: the testbed makes the hosts; inventory: they exist, and are reached over SSH.",
    )
    inventory: InventoryForm | None = optional("With provision: inventory, what its hosts share.")
    racks: Racks = Field(
        default_factory=lambda: ["r1"],
        description="The racks, as a list or with their uplinks; one, r1, unless given.",
        json_schema_extra={"default": ["r1"]},
    )
    machines: dict[RackName, MachineForm] | None = Field(
        None,
        min_length=1,
        max_length=MAX_MACHINES,
        description="The machines with a container engine over which the hosts are spread, by name.",
    )
    mtu: Mtu | None = optional("With machines, the MTU of every data NIC. Left out: the network between them less 50.")
    kafka: KafkaForm | None = optional("Kafka's version and properties for every host that runs it.")
    software: SoftwareForm | None = optional("Other software than Apache Kafka; needs an objectstore host.")
    remote_storage: RemoteStorageForm | None = optional(
        "Brokers have remote log storage (KIP-405); needs an objectstore host."
    )
    defaults: DefaultsForm | None = optional("What every host starts from.")
    roles: RolesForm | None = optional("Settings by role, over defaults, under hosts.")
    hosts: dict[HostName, HostForm] = Field(
        min_length=1,
        max_length=rules.MAX_HOSTS,
        description="The hosts by name; at least one broker and one controller (or one that is both).",
    )


def _unknown_field(path: FieldPath) -> str:
    match path:
        case ("defaults", "kafka"):
            return "; did you mean kafka at the top of the file? It holds for every host"
        case ("roles", str(role), "kafka") if role in list(Role):
            return f" ({Role(role).in_words} runs no Kafka)"
        case ("nic",):
            return "; did you mean defaults: {nic: …}?"
    return ""


KIND = FileKind(
    "topology",
    "name and hosts",
    sharing="what hosts share stands in defaults or roles",
    error=TopologyError,
    missing={
        "name": "the topology's name, such as two-brokers",
        "hosts": "the hosts by name, such as {b1: {role: both}}",
        "role": choices([role.value for role in Role]),
        "automq": "what the cluster runs: automq, such as {automq: {path: ../automq}}",
    },
    unknown=_unknown_field,
)


def json_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) that `topologies/topology.schema.json` holds."""
    schema = editor_schema(TopologyForm)
    hosts = schema["properties"]["hosts"]
    hosts["propertyNames"] = {"pattern": rules.HOST_NAME}
    forms = schema["$defs"]
    for link in ("NicForm", "UplinkForm"):
        forms[link]["allOf"] = [
            {"not": {"required": [whole, f"{side}_{whole}"]}} for whole in ("rate", "burst") for side in ("tx", "rx")
        ]
    for level in ("HostForm", "KafkaRoleForm", "ClientRoleForm", "ObjectStoreRoleForm", "DefaultsForm"):
        forms[level]["not"] = {"required": ["nic", "nics"]}
    forms["HostForm"]["allOf"] = [_without(role) for role in Role if not role.runs_kafka]
    forms["AutomqForm"]["not"] = {"required": ["path", "image"]}
    return schema


def _without(role: Role) -> dict[str, Any]:
    """Return the fields that a host of this role may not have."""
    fields = ["kafka", "node_id", *([] if role.stores_data else ["disk"])]
    has_role = {"properties": {"role": {"const": role.value}}, "required": ["role"]}
    return {"if": has_role, "then": {"properties": dict.fromkeys(fields, False)}}
