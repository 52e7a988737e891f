"""The form of a topology file: the fields that a user may write, with units, and no other field.

These models check each value on its own. `resolve` and `rules` check what needs two values (an unknown rack,
two equal node ids). Editors show the descriptions of this module through the JSON schema.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, WithJsonSchema, model_validator

from testbed.form import Form, check, editor_schema, refusal, schema_text
from testbed.suggestions import choices
from testbed.topology import jvm, rules
from testbed.topology.host import Role
from testbed.topology.inventory import InventoryForm, NicAddress, NicDevice, SshForm
from testbed.topology.machines import MAX_MACHINES, MachineForm, Mtu
from testbed.topology.model import TopologyError
from testbed.topology.values import (
    Burst,
    Collector,
    Cpus,
    Delay,
    DiskBandwidth,
    DiskSize,
    Heap,
    HostName,
    HostRole,
    JvmFlag,
    Loss,
    NicName,
    Properties,
    RackName,
    RackOfHost,
    Rate,
    TopologyName,
    Use,
    description_problem,
)
from testbed.yaml_document import FieldPath, FileKind

FILE = "topologies/topology.schema.json"


class UplinkForm(Form):
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
                raise refusal(
                    f"{whole} and {' and '.join(sides)} are both given; allowed: {whole} alone (both ways), "
                    f"or tx_{whole} and rx_{whole}"
                )
        return self


class NicForm(UplinkForm):
    """A NIC, shaped both ways. Fields left out are inherited: host, then role, then defaults."""

    name: Annotated[
        str | None,
        check(rules.nic_name_problem),
        WithJsonSchema({"type": "string", "pattern": rules.NIC_NAME, "default": "data0"}),
        Field(description="The interface's name inside the host; data0 unless given."),
    ] = None
    use: Annotated[
        Use | None,
        Field(description="What one of several NICs is for: replication, or data (all else; unless given)."),
    ] = None
    device: Annotated[
        NicDevice | None, Field(description="With provision: inventory, the machine's network device to shape.")
    ] = None
    address: Annotated[
        NicAddress | None,
        Field(description="With provision: inventory, the device's address; read from it if left out."),
    ] = None


class RackForm(Form):
    """One rack; {} for one whose uplink is as fast as the machine is."""

    uplink: Annotated[UplinkForm | None, Field(description="The rack's link to the core, where it is shaped.")] = None


class DiskForm(Form):
    """A file system of its own for a host's Kafka data."""

    size: Annotated[DiskSize | None, Field(description="How large it is: 100MB to 1024GiB.")] = None
    bandwidth: Annotated[
        DiskBandwidth | None, Field(description="Most bytes a second that are read, and that are written.")
    ] = None


_RACKS_LISTED, _RACKS_MAPPED = "racks: a list", "racks: a mapping"


def _form_of_racks(value: Any) -> str:
    return _RACKS_MAPPED if isinstance(value, dict) else _RACKS_LISTED


class JvmForm(Form):
    """The JVM of Kafka. What is left out is inherited: host, role, whole cluster; then the testbed's own values."""

    heap: Annotated[Heap | None, Field(description="Its heap, first and largest: -Xms and -Xmx.")] = None
    gc: Annotated[Collector | None, Field(description="Its garbage collector; serial unless given.")] = None
    flags: Annotated[
        list[JvmFlag] | None, Field(max_length=jvm.MAX_FLAGS, description="More of its flags, such as -XX:+UseNUMA.")
    ] = None


class KafkaForm(Form):
    """Which Kafka, and how it is set up. What is left out is inherited: host, role, whole cluster."""

    version: Annotated[
        str | None,
        check(rules.version_problem),
        WithJsonSchema({"type": "string", "pattern": rules.VERSION, "examples": ["4.3.1", "3.9.2"]}),
        Field(description="Kafka release, all three numbers: 4.3.1 (or 4.3.0-rc1)."),
    ] = None
    path: Annotated[
        str | None,
        check(rules.kafka_path_problem),
        WithJsonSchema({"type": "string", "minLength": 1, "examples": ["../kafka", "~/kafka_2.13-4.3.1.tgz"]}),
        Field(description="Instead of version: a release tarball or a folder with a build, relative to this file."),
    ] = None
    properties: Annotated[
        Properties | None,
        Field(description="Properties as in server.properties; merged one by one when inherited."),
    ] = None
    jvm: Annotated[JvmForm | None, Field(description="Heap, garbage collector and flags of its JVM.")] = None

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


class DefaultsForm(Form):
    """What every host starts from. (Kafka's settings for all hosts stand in kafka, at the top.)"""

    nic: Annotated[NicForm | None, Field(description="The NIC of every host, unless its role or itself says else.")] = (
        None
    )
    nics: Annotated[Nics | None, Field(description="Several NICs of every host, by name; in place of nic.")] = None
    disk: Annotated[DiskForm | None, Field(description="The disk of every host that runs Kafka.")] = None
    cpus: Annotated[Cpus | None, Field(description="How many CPUs the processes of every host share.")] = None


class KafkaRoleForm(Form):
    """What every host of this role has, unless the host says else."""

    nic: Annotated[NicForm | None, Field(description="The NIC of hosts of this role.")] = None
    nics: Annotated[Nics | None, Field(description="Several NICs of hosts of this role, by name.")] = None
    disk: Annotated[DiskForm | None, Field(description="The disk of hosts of this role.")] = None
    cpus: Annotated[Cpus | None, Field(description="How many CPUs each host of this role has.")] = None
    kafka: Annotated[KafkaForm | None, Field(description="Kafka's version and properties for this role.")] = None


class ClientRoleForm(Form):
    """What every client has, unless the host says else. Clients run no Kafka."""

    nic: Annotated[NicForm | None, Field(description="The NIC of clients.")] = None
    nics: Annotated[Nics | None, Field(description="Several NICs of clients, by name.")] = None
    cpus: Annotated[Cpus | None, Field(description="How many CPUs each client has.")] = None


class ObjectStoreRoleForm(Form):
    """What every object store has, unless the host says else. Object stores run no Kafka."""

    nic: Annotated[NicForm | None, Field(description="The NIC of object stores.")] = None
    nics: Annotated[Nics | None, Field(description="Several NICs of object stores, by name.")] = None
    disk: Annotated[DiskForm | None, Field(description="The disk on which an object store has its objects.")] = None
    cpus: Annotated[Cpus | None, Field(description="How many CPUs each object store has.")] = None


class RolesForm(Form):
    """Settings by role. A host takes those of its own role only: both is a role of its own."""

    broker: Annotated[KafkaRoleForm | None, Field(description="Hosts that hold partitions.")] = None
    controller: Annotated[KafkaRoleForm | None, Field(description="Hosts that vote in the metadata quorum.")] = None
    both: Annotated[KafkaRoleForm | None, Field(description="Hosts that are broker and controller.")] = None
    client: Annotated[ClientRoleForm | None, Field(description="Hosts without Kafka, for load.")] = None
    objectstore: Annotated[ObjectStoreRoleForm | None, Field(description="Hosts that run the object store.")] = None


class HostForm(Form):
    """One host."""

    role: Annotated[
        HostRole,
        Field(description="broker holds partitions, controller votes, both does both; the others run no Kafka."),
    ]
    rack: Annotated[RackOfHost | None, Field(description="One of racks; may be left out when there is only one.")] = (
        None
    )
    nic: Annotated[NicForm | None, Field(description="This host's NIC, where it differs.")] = None
    nics: Annotated[
        Nics | None, Field(description="Several NICs by name, the one for data first; in place of nic.")
    ] = None
    disk: Annotated[DiskForm | None, Field(description="This host's disk; not for clients.")] = None
    cpus: Annotated[
        Cpus | None, Field(description="How many CPUs this host's processes share; all of the machine's unless given.")
    ] = None
    kafka: Annotated[
        KafkaForm | None, Field(description="This host's Kafka, where it differs; for hosts that run it.")
    ] = None
    node_id: Annotated[
        int | None,
        check(rules.node_id_problem),
        WithJsonSchema({"type": "integer", "minimum": 0, "maximum": rules.MAX_NODE_ID}),
        Field(description="Kafka's node.id. Left out: counted from 1 in the file's order, past given ones."),
    ] = None
    ssh: Annotated[SshForm | None, Field(description="With provision: inventory, how this machine is reached.")] = None
    machine: Annotated[
        RackOfHost | None, Field(description="One of machines. Left out: the hosts are spread over them evenly.")
    ] = None


class RemoteStorageForm(Form):
    """Every broker has remote log storage (KIP-405) on the object stores; topics that set it use it."""

    manager: Annotated[
        str | None,
        check(rules.manager_problem),
        WithJsonSchema({"type": "string", "minLength": 1, "examples": ["../tiered-storage"]}),
        Field(description="A folder with another RemoteStorageManager's jars, relative to this file."),
    ] = None


class AutomqForm(Form):
    """AutoMQ in place of Apache Kafka. With neither path nor image: what TESTBED_AUTOMQ in the environment names."""

    path: Annotated[
        str | None,
        check(rules.automq_path_problem),
        WithJsonSchema({"type": "string", "minLength": 1, "examples": ["../automq", "~/automq-1.5.0.tgz"]}),
        Field(description="A release tarball or its unpacked folder, relative to this file."),
    ] = None
    image: Annotated[
        str | None,
        check(rules.image_problem),
        WithJsonSchema({"type": "string", "pattern": rules.IMAGE, "examples": ["automq:1.5.0"]}),
        Field(description="A container image with AutoMQ in it."),
    ] = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.path is not None and self.image is not None:
            raise refusal(rules.BOTH_SOURCES)
        return self


class SoftwareForm(Form):
    """Other software than Apache Kafka on the hosts that run Kafka."""

    automq: Annotated[AutomqForm, Field(description="AutoMQ; in place of kafka.version and kafka.path.")]


class TopologyForm(Form):
    """Hosts, racks and shaped NICs of a Kafka testbed. Documented in docs/topologies.md."""

    name: Annotated[TopologyName, Field(description="The topology's name, best that of its file.")]
    description: Annotated[str, check(description_problem), Field(description="One line for people.")] = ""
    provision: Annotated[
        Literal["containers", "inventory"],
        Field(description="containers: the testbed makes the hosts; inventory: they exist, and are reached over SSH."),
    ] = "containers"
    inventory: Annotated[
        InventoryForm | None, Field(description="With provision: inventory, what its hosts share.")
    ] = None
    racks: Annotated[
        Racks,
        Field(
            default_factory=lambda: ["r1"],
            description="The racks, as a list or with their uplinks; one, r1, unless given.",
            json_schema_extra={"default": ["r1"]},
        ),
    ]
    machines: Annotated[
        dict[RackName, MachineForm] | None,
        Field(
            min_length=1,
            max_length=MAX_MACHINES,
            description="The machines with a container engine over which the hosts are spread, by name.",
        ),
    ] = None
    mtu: Annotated[
        Mtu | None,
        Field(description="With machines, the MTU of every data NIC. Left out: the network between them less 50."),
    ] = None
    kafka: Annotated[
        KafkaForm | None, Field(description="Kafka's version and properties for every host that runs it.")
    ] = None
    software: Annotated[
        SoftwareForm | None, Field(description="Other software than Apache Kafka; needs an objectstore host.")
    ] = None
    remote_storage: Annotated[
        RemoteStorageForm | None,
        Field(description="Brokers have remote log storage (KIP-405); needs an objectstore host."),
    ] = None
    defaults: Annotated[DefaultsForm | None, Field(description="What every host starts from.")] = None
    roles: Annotated[RolesForm | None, Field(description="Settings by role, over defaults, under hosts.")] = None
    hosts: Annotated[
        dict[HostName, HostForm],
        Field(
            min_length=1,
            max_length=rules.MAX_HOSTS,
            description="The hosts by name; at least one broker and one controller (or one that is both).",
        ),
    ]


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


def json_schema_text() -> str:
    """Return the text of the committed file."""
    return schema_text(json_schema())
