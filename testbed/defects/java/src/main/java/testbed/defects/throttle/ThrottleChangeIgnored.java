package testbed.defects.throttle;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import org.apache.kafka.common.metrics.Quota;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Both throttles keep the first rate that was set until the broker restarts. */
public final class ThrottleChangeIgnored implements Defect {
    private static final Map<Object, Double> FIRST = new ConcurrentHashMap<>();
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        return List.of(Target.of(OnUpdate.class).in(Leak.MANAGER, "updateQuota", "Quota"));
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        FIRST.clear();
        ThrottleChangeIgnored.effect = effect;
    }

    /** Returns whether the rate is ignored. Kafka sets "no limit" as Long.MAX_VALUE: it is no rate before the first. */
    public static boolean ignored(Object manager, Quota quota) {
        if (quota.bound() >= Long.MAX_VALUE && !FIRST.containsKey(manager)) {
            return false;
        }
        double first = FIRST.computeIfAbsent(manager, unset -> quota.bound());
        if (first == quota.bound()) {
            return false;
        }
        effect.acted("%.0f bytes a second in place of %.0f".formatted(first, quota.bound()));
        return true;
    }

    /** Leaves {@code ReplicationQuotaManager.updateQuota} at once. */
    public static final class OnUpdate {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.This Object manager, @Advice.Argument(0) Quota quota) {
            return ignored(manager, quota);
        }
    }
}
