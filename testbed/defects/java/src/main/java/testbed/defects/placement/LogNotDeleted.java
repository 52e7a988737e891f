package testbed.defects.placement;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;
import testbed.defects.Topics;

import net.bytebuddy.asm.Advice;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;

import java.util.List;

/** A broker keeps the log of a replica that was removed from it, but not one of a deleted topic. */
public final class LogNotDeleted implements Defect {
    private static final ThreadLocal<Object> STOPPING = new ThreadLocal<>();
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        return List.of(
                Target.of(OnStop.class).in("kafka.server.ReplicaManager", "stopPartitions", "Set"),
                Target.of(OnDelete.class)
                        .in(
                                "kafka.log.LogManager",
                                "asyncDelete",
                                "TopicPartition",
                                "boolean",
                                "boolean",
                                "boolean"));
    }

    @Override
    public Reads reads() {
        return Reads.nothing()
                .of("kafka.server.ReplicaManager", "metadataCache")
                .of("org.apache.kafka.metadata.MetadataCache|kafka.server.MetadataCache", "getTopicId");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        LogNotDeleted.effect = effect;
    }

    /** Keeps the replica manager in which this thread stops partitions; null ends that. */
    public static void stopping(Object replicaManager) {
        if (replicaManager == null) {
            STOPPING.remove();
        } else {
            STOPPING.set(replicaManager);
        }
    }

    /** Returns whether the log stays: that of a user's topic that still exists. */
    public static boolean stays(TopicPartition partition) {
        Object replicaManager = STOPPING.get();
        if (replicaManager == null || !Topics.isOfUser(partition.topic())) {
            return false;
        }
        Object topicId = Reflect.call(Reflect.call(replicaManager, "metadataCache"), "getTopicId", partition.topic());
        if (topicId.equals(Uuid.ZERO_UUID)) {
            return false;
        }
        effect.acted(partition + " stays on the disk");
        return true;
    }

    /** Surrounds {@code ReplicaManager.stopPartitions}. */
    public static final class OnStop {
        @Advice.OnMethodEnter
        static void enter(@Advice.This Object replicaManager) {
            stopping(replicaManager);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit() {
            stopping(null);
        }
    }

    /** Leaves {@code LogManager.asyncDelete} at once; its caller does not use the answer. */
    public static final class OnDelete {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.Argument(0) TopicPartition partition) {
            return stays(partition);
        }
    }
}
