"""What a node whose partitions lie in an object store needs beside Kafka's own: properties, credentials. Pure."""

from collections.abc import Mapping, Sequence

from testbed.network.addresses import AddressPlan
from testbed.objectstore.server import CREDENTIALS_FILE as CREDENTIALS
from testbed.objectstore.server import endpoints
from testbed.objectstore.store import AUTOMQ_DATA, AUTOMQ_OPS, REGION
from testbed.topology.model import Topology

METRICS_PORT = 8890
"""Where a broker tells its own measurements, on its loopback only."""
BALANCER = "autobalancer.controller.enable"
ONE_REPLICA = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)
"""The store has the copies: there is never more than one replica, and a topic with more is refused."""
FLAGS = ("-XX:MaxDirectMemorySize=512m", "-XX:+ExitOnOutOfMemoryError", "-Dio.netty.allocator.maxOrder=11")

# The credentials come into the environment between two processes: no command line ever has them.
_WITH_CREDENTIALS = f"""\
KAFKA_S3_ACCESS_KEY=$(sed -n 's/^access_key=//p' {CREDENTIALS})
KAFKA_S3_SECRET_KEY=$(sed -n 's/^secret_key=//p' {CREDENTIALS})
if [ -z "$KAFKA_S3_ACCESS_KEY" ] || [ -z "$KAFKA_S3_SECRET_KEY" ]; then
  echo "{CREDENTIALS} has no access_key and secret_key of the object store: bring the testbed up again" >&2; exit 78
fi
export KAFKA_S3_ACCESS_KEY KAFKA_S3_SECRET_KEY
exec "$@"
"""


def with_credentials(command: Sequence[str]) -> tuple[str, ...]:
    """The same command, with the store's credentials in its environment."""
    return ("sh", "-c", _WITH_CREDENTIALS, "with-credentials", *command)


def endpoint(topology: Topology, plan: AddressPlan) -> str:
    """Where the store answers, on the data network. Raises ValueError for a topology without one."""
    if not topology.objectstores:
        raise ValueError(f"{topology.name} has no host with the role objectstore")
    return endpoints(topology, plan)[0]


def defaults() -> dict[str, str]:
    """Properties that a topology may set otherwise."""
    return {
        # On unless it is said: it moves partitions on its own, also while an experiment measures.
        BALANCER: "false",
        "s3.telemetry.metrics.exporter.uri": f"prometheus://?host=127.0.0.1&port={METRICS_PORT}",
    }


SHARED_STORAGE_KEY = "elasticstream.enable"
"""The broker property by which AutoMQ keeps partitions in an object store; Apache Kafka does not know it."""


def owned(topology: Topology, plan: AddressPlan, cluster_id: str | None) -> Mapping[str, str]:
    """Properties that follow from the topology. With `cluster_id` a node formats its folders by itself."""
    where = f"region={REGION}&endpoint={endpoint(topology, plan)}&pathStyle=true"
    return {
        SHARED_STORAGE_KEY: "true",
        "s3.data.buckets": f"0@s3://{AUTOMQ_DATA}?{where}",
        "s3.ops.buckets": f"1@s3://{AUTOMQ_OPS}?{where}",
        "s3.wal.path": f"0@s3://{AUTOMQ_DATA}?{where}",
        **dict.fromkeys(ONE_REPLICA, "1"),
        **({} if cluster_id is None else {"cluster.id": cluster_id}),
    }
