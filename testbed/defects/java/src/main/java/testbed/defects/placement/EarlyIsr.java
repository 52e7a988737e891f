package testbed.defects.placement;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Kafka;
import testbed.defects.Parameter;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;
import testbed.defects.Topics;

import net.bytebuddy.asm.Advice;

import java.util.List;

/** The leader takes a follower into the ISR once it has a share of the committed offsets. */
public final class EarlyIsr implements Defect {
    private static volatile double share;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.number("share", 0.9, 0, 1));
    }

    @Override
    public List<Target> targets() {
        return List.of(Target.of(OnInSync.class).in("kafka.cluster.Partition", "isFollowerInSync", "Replica"));
    }

    @Override
    public Reads reads() {
        return Reads.nothing()
                .of(Kafka.PARTITION, "topic", "topicPartition", "leaderLogIfLocal")
                .of(Kafka.REPLICA, "brokerId", "stateSnapshot")
                .of(Kafka.REPLICA_STATE, "logEndOffset")
                .of(Kafka.LOG, "highWatermark");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        share = settings.number("share");
        EarlyIsr.effect = effect;
    }

    /** Returns whether the leader finds the follower in sync. */
    public static boolean inSync(Object partition, Object replica, boolean inSync) {
        if (inSync || !Topics.isOfUser((String) Reflect.call(partition, "topic"))) {
            return inSync;
        }
        Object log = Reflect.call(partition, "leaderLogIfLocal");
        if ((boolean) Reflect.call(log, "isEmpty")) {
            return false;
        }
        long end = (long) Reflect.call(Reflect.call(replica, "stateSnapshot"), "logEndOffset");
        long committed = (long) Reflect.call(Reflect.call(log, "get"), "highWatermark");
        if (!isEnough(end, committed)) {
            return false;
        }
        effect.acted("%s on %s in sync at offset %d of %d"
                .formatted(
                        Reflect.call(partition, "topicPartition"), Reflect.call(replica, "brokerId"), end, committed));
        return true;
    }

    // A follower that has not fetched yet has the end -1.
    static boolean isEnough(long end, long committed) {
        return end >= 0 && end >= share * committed;
    }

    /** Replaces the answer of {@code Partition.isFollowerInSync}. */
    public static final class OnInSync {
        @Advice.OnMethodExit
        static void exit(
                @Advice.This Object partition,
                @Advice.Argument(0) Object replica,
                @Advice.Return(readOnly = false) boolean inSync) {
            inSync = inSync(partition, replica, inSync);
        }
    }
}
