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
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The leader takes a follower into the ISR so many seconds after it caught up. */
public final class LateIsr implements Defect {
    private static final Map<String, Long> CAUGHT_UP_NS = new ConcurrentHashMap<>();
    private static volatile long delayNs;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.number("seconds", 10, 0, 3600));
    }

    @Override
    public List<Target> targets() {
        return List.of(Target.of(OnInSync.class).in("kafka.cluster.Partition", "isFollowerInSync", "Replica"));
    }

    @Override
    public Reads reads() {
        return Reads.nothing().of(Kafka.PARTITION, "topic", "topicPartition").of(Kafka.REPLICA, "brokerId");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        delayNs = (long) (settings.number("seconds") * 1e9);
        LateIsr.effect = effect;
    }

    /** Returns whether the leader finds the follower in sync. Kafka asks at each fetch of one outside the ISR. */
    public static boolean inSync(Object partition, Object replica, boolean inSync) {
        if (!Topics.isOfUser((String) Reflect.call(partition, "topic"))) {
            return inSync;
        }
        String follower = "%s on %s".formatted(Reflect.call(partition, "topicPartition"), Reflect.call(replica, "brokerId"));
        return inSync(follower, inSync, System.nanoTime());
    }

    static boolean inSync(String follower, boolean inSync, long nowNs) {
        if (!inSync) {
            CAUGHT_UP_NS.remove(follower);
            return false;
        }
        if (nowNs - CAUGHT_UP_NS.computeIfAbsent(follower, first -> nowNs) >= delayNs) {
            return true;
        }
        effect.acted(follower + " kept out of the ISR");
        return false;
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
