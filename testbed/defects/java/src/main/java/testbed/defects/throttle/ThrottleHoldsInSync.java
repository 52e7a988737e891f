package testbed.defects.throttle;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Kafka;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;
import testbed.defects.Topics;

import net.bytebuddy.asm.Advice;

import org.apache.kafka.common.TopicPartition;

import java.util.List;

/** Both throttles also hold back listed replicas that are in sync, as before KAFKA-4313. */
public final class ThrottleHoldsInSync implements Defect {
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        return List.of(
                Target.of(OnLeader.class)
                        .in("kafka.server.ReplicaManager", "shouldLeaderThrottle", "ReplicaQuota", "Partition", "int"),
                Target.of(OnFollower.class)
                        .in(
                                "kafka.server.RemoteLeaderEndPoint",
                                "shouldFollowerThrottle",
                                "ReplicaQuota",
                                "PartitionFetchState",
                                "TopicPartition"));
    }

    @Override
    public Reads reads() {
        return Reads.nothing().of(Kafka.PARTITION, "topicPartition").of("kafka.server.ReplicaQuota", "isThrottled", "isQuotaExceeded");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        ThrottleHoldsInSync.effect = effect;
    }

    /** Returns whether a leader holds back the partition. */
    public static boolean held(boolean held, Object quota, Object partition) {
        return held || held(false, quota, (TopicPartition) Reflect.call(partition, "topicPartition"));
    }

    /** Returns whether the partition is held back: without regard to the replica's being in sync. */
    public static boolean held(boolean held, Object quota, TopicPartition partition) {
        if (held
                || !Topics.isOfUser(partition.topic())
                || !(boolean) Reflect.call(quota, "isThrottled", partition)
                || !(boolean) Reflect.call(quota, "isQuotaExceeded")) {
            return held;
        }
        effect.acted(partition + " held back though in sync");
        return true;
    }

    /** Replaces the answer of {@code ReplicaManager.shouldLeaderThrottle}. */
    public static final class OnLeader {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Argument(0) Object quota,
                @Advice.Argument(1) Object partition,
                @Advice.Return(readOnly = false) boolean held) {
            held = held(held, quota, partition);
        }
    }

    /** Replaces the answer of {@code RemoteLeaderEndPoint.shouldFollowerThrottle}. */
    public static final class OnFollower {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Argument(0) Object quota,
                @Advice.Argument(2) TopicPartition partition,
                @Advice.Return(readOnly = false) boolean held) {
            held = held(held, quota, partition);
        }
    }
}
