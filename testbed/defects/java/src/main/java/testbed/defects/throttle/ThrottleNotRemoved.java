package testbed.defects.throttle;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Settings;
import testbed.defects.Target;
import testbed.defects.Topics;

import net.bytebuddy.asm.Advice;

import org.apache.kafka.common.metrics.Quota;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Both throttles keep their rate and the lists of their partitions when these are removed. */
public final class ThrottleNotRemoved implements Defect {
    private static final Set<Object> LIMITED = ConcurrentHashMap.newKeySet();
    private static volatile String topic;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.text("topic", ""));
    }

    @Override
    public List<Target> targets() {
        return List.of(
                Target.of(OnUpdate.class).in(Leak.MANAGER, "updateQuota", "Quota"),
                Target.of(OnRemove.class).in(Leak.MANAGER, "removeThrottle", "String"));
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        LIMITED.clear();
        topic = settings.text("topic");
        ThrottleNotRemoved.effect = effect;
    }

    /** Returns whether the rate stays. Kafka sets "no limit" as Long.MAX_VALUE; another rate is in force at once. */
    public static boolean stays(Object manager, Quota quota) {
        if (quota.bound() < Long.MAX_VALUE) {
            LIMITED.add(manager);
            return false;
        }
        if (!LIMITED.contains(manager)) {
            return false;
        }
        effect.acted("a rate stays");
        return true;
    }

    /** Returns whether a topic's list stays. Kafka removes that of each changed topic, also if there is none. */
    public static boolean stays(String name, Map<?, ?> lists) {
        if (!lists.containsKey(name) || !Topics.isOfUser(name) || !(topic.isEmpty() || topic.equals(name))) {
            return false;
        }
        effect.acted("the list of %s stays".formatted(name));
        return true;
    }

    /** Leaves {@code ReplicationQuotaManager.updateQuota} at once. */
    public static final class OnUpdate {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.This Object manager, @Advice.Argument(0) Quota quota) {
            return stays(manager, quota);
        }
    }

    /** Leaves {@code ReplicationQuotaManager.removeThrottle} at once. */
    public static final class OnRemove {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.Argument(0) String name, @Advice.FieldValue("throttledPartitions") Map<?, ?> lists) {
            return stays(name, lists);
        }
    }
}
