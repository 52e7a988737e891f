package testbed.defects;

/** The names of Kafka's classes that several defects read; a class that moved has its names with a | between. */
public final class Kafka {
    /** A partition on a broker. */
    public static final String PARTITION = "kafka.cluster.Partition";

    /** A leader's view of a replica. */
    public static final String REPLICA = "org.apache.kafka.server.replica.Replica|kafka.cluster.Replica";

    /** The state of {@link #REPLICA} at one moment. */
    public static final String REPLICA_STATE = "org.apache.kafka.server.replica.ReplicaState|kafka.cluster.ReplicaState";

    /** The log of a partition. */
    public static final String LOG = "org.apache.kafka.storage.internals.log.UnifiedLog|kafka.log.UnifiedLog";

    /** Records in memory. */
    public static final String MEMORY_RECORDS =
            "org.apache.kafka.common.record.internal.MemoryRecords|org.apache.kafka.common.record.MemoryRecords";

    /** A partition in the metadata. */
    public static final String REGISTRATION = "org.apache.kafka.metadata.PartitionRegistration";

    /** What builds a controller's change of a partition. */
    public static final String CHANGE_BUILDER = "org.apache.kafka.controller.PartitionChangeBuilder";

    private Kafka() {}
}
