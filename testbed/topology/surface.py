"""The form of a topology file: the fields a person may write, with units, and nothing else.

These models check each value on its own. What needs two values (an unknown rack, two equal node ids) is
checked by `resolve` and `rules`. Descriptions here are what editors show through the JSON schema.
"""

from typing import Annotated, Any, Self

from pydantic import Discriminator, Field, Tag, WithJsonSchema, model_validator

from testbed.topology import rules
from testbed.topology.link_forms import DiskForm, NicForm, RackForm, Surface
from testbed.topology.values import (
    Cpus,
    HostName,
    HostRole,
    NicName,
    Properties,
    RackName,
    RackOfHost,
    TopologyName,
    description_problem,
    problem,
    text,
)

RACKS_LISTED, RACKS_MAPPED = "racks: a list", "racks: a mapping"
"""Pydantic writes these into the path of whatever is wrong with racks; no rack can be called so."""


def _form_of_racks(value: Any) -> str:
    return RACKS_MAPPED if isinstance(value, dict) else RACKS_LISTED


class KafkaForm(Surface):
    """Which Kafka, and how it is set up. What is left out is inherited: host, role, whole cluster."""

    version: Annotated[
        str | None,
        text(rules.version_problem),
        WithJsonSchema({"type": "string", "pattern": rules.VERSION, "examples": ["4.3.1", "3.9.2"]}),
        Field(description="Kafka release, all three numbers: 4.3.1 (or 4.3.0-rc1)."),
    ] = None
    path: Annotated[
        str | None,
        text(rules.kafka_path_problem),
        WithJsonSchema({"type": "string", "minLength": 1, "examples": ["../kafka", "~/kafka_2.13-4.3.1.tgz"]}),
        Field(description="Instead of version: a release tarball or a folder with a build, relative to this file."),
    ] = None
    properties: Annotated[
        Properties | None,
        Field(description="Properties as in server.properties; merged one by one when inherited."),
    ] = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.version is not None and self.path is not None:
            raise problem("path stands beside version; allowed: one of the two")
        return self


Nics = Annotated[dict[NicName, NicForm], Field(min_length=1, max_length=rules.MAX_NICS)]
_Listed = Annotated[list[RackName], Field(min_length=1, max_length=rules.MAX_RACKS)]
_Mapped = Annotated[dict[RackName, RackForm], Field(min_length=1, max_length=rules.MAX_RACKS)]
Racks = Annotated[
    Annotated[_Listed, Tag(RACKS_LISTED)] | Annotated[_Mapped, Tag(RACKS_MAPPED)], Discriminator(_form_of_racks)
]


class DefaultsForm(Surface):
    """What every host starts from. (Kafka's settings for all hosts stand in kafka, at the top.)"""

    nic: Annotated[NicForm | None, Field(description="The NIC of every host, unless its role or itself says else.")] = (
        None
    )
    nics: Annotated[Nics | None, Field(description="Several NICs of every host, by name; in place of nic.")] = None
    disk: Annotated[DiskForm | None, Field(description="The disk of every host that runs Kafka.")] = None
    cpus: Annotated[Cpus | None, Field(description="How many CPUs the processes of every host share.")] = None


class KafkaRoleForm(Surface):
    """What every host of this role has, unless the host says else."""

    nic: Annotated[NicForm | None, Field(description="The NIC of hosts of this role.")] = None
    nics: Annotated[Nics | None, Field(description="Several NICs of hosts of this role, by name.")] = None
    disk: Annotated[DiskForm | None, Field(description="The disk of hosts of this role.")] = None
    cpus: Annotated[Cpus | None, Field(description="How many CPUs each host of this role has.")] = None
    kafka: Annotated[KafkaForm | None, Field(description="Kafka's version and properties for this role.")] = None


class ClientRoleForm(Surface):
    """What every client has, unless the host says else. Clients run no Kafka."""

    nic: Annotated[NicForm | None, Field(description="The NIC of clients.")] = None
    nics: Annotated[Nics | None, Field(description="Several NICs of clients, by name.")] = None
    cpus: Annotated[Cpus | None, Field(description="How many CPUs each client has.")] = None


class ObjectStoreRoleForm(Surface):
    """What every object store has, unless the host says else. Object stores run no Kafka."""

    nic: Annotated[NicForm | None, Field(description="The NIC of object stores.")] = None
    nics: Annotated[Nics | None, Field(description="Several NICs of object stores, by name.")] = None
    disk: Annotated[DiskForm | None, Field(description="The disk on which an object store has its objects.")] = None
    cpus: Annotated[Cpus | None, Field(description="How many CPUs each object store has.")] = None


class RolesForm(Surface):
    """Settings by role. A host takes those of its own role only: both is a role of its own."""

    broker: Annotated[KafkaRoleForm | None, Field(description="Hosts that hold partitions.")] = None
    controller: Annotated[KafkaRoleForm | None, Field(description="Hosts that vote in the metadata quorum.")] = None
    both: Annotated[KafkaRoleForm | None, Field(description="Hosts that are broker and controller.")] = None
    client: Annotated[ClientRoleForm | None, Field(description="Hosts without Kafka, for load.")] = None
    objectstore: Annotated[ObjectStoreRoleForm | None, Field(description="Hosts that run the object store.")] = None


class HostForm(Surface):
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
        text(rules.node_id_problem),
        WithJsonSchema({"type": "integer", "minimum": 0, "maximum": rules.MAX_NODE_ID}),
        Field(description="Kafka's node.id. Left out: counted from 1 in the file's order, past given ones."),
    ] = None


class RemoteStorageForm(Surface):
    """Every broker has remote log storage (KIP-405) on the object stores; topics that set it use it."""

    manager: Annotated[
        str | None,
        text(rules.manager_problem),
        WithJsonSchema({"type": "string", "minLength": 1, "examples": ["../tiered-storage"]}),
        Field(description="A folder with another RemoteStorageManager's jars, relative to this file."),
    ] = None


class AutomqForm(Surface):
    """AutoMQ in place of Apache Kafka. With neither path nor image: what TESTBED_AUTOMQ in the environment names."""

    path: Annotated[
        str | None,
        text(rules.automq_path_problem),
        WithJsonSchema({"type": "string", "minLength": 1, "examples": ["../automq", "~/automq-1.5.0.tgz"]}),
        Field(description="A release tarball or its unpacked folder, relative to this file."),
    ] = None
    image: Annotated[
        str | None,
        text(rules.image_problem),
        WithJsonSchema({"type": "string", "pattern": rules.IMAGE, "examples": ["automq:1.5.0"]}),
        Field(description="A container image with AutoMQ in it."),
    ] = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.path is not None and self.image is not None:
            raise problem(rules.BOTH_SOURCES)
        return self


class SoftwareForm(Surface):
    """Other software than Apache Kafka on the hosts that run Kafka."""

    automq: Annotated[AutomqForm, Field(description="AutoMQ; in place of kafka.version and kafka.path.")]


class TopologyForm(Surface):
    """Hosts, racks and shaped NICs of a Kafka testbed. Documented in docs/topologies.md."""

    name: Annotated[TopologyName, Field(description="The topology's name, best that of its file.")]
    description: Annotated[str, text(description_problem), Field(description="One line for people.")] = ""
    racks: Annotated[
        Racks,
        Field(
            default_factory=lambda: ["r1"],
            description="The racks, as a list or with their uplinks; one, r1, unless given.",
            json_schema_extra={"default": ["r1"]},
        ),
    ]
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
