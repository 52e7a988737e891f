package testbed.defects.throttle;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Settings;
import testbed.defects.Target;
import testbed.defects.Topics;

import net.bytebuddy.asm.Advice;

import org.apache.kafka.common.TopicPartition;

import java.util.List;

/** Both throttles also hold back partitions that no list names. */
public final class ThrottleHoldsUnlisted implements Defect {
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        return List.of(Target.of(OnThrottled.class).in(Leak.MANAGER, "isThrottled", "TopicPartition"));
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        ThrottleHoldsUnlisted.effect = effect;
    }

    /** Returns whether the partition is throttled. */
    public static boolean throttled(TopicPartition asked, boolean throttled) {
        if (throttled || !Topics.isOfUser(asked.topic())) {
            return throttled;
        }
        effect.acted("%s throttled".formatted(asked));
        return true;
    }

    /** Replaces the answer of {@code ReplicationQuotaManager.isThrottled}. */
    public static final class OnThrottled {
        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) TopicPartition asked, @Advice.Return(readOnly = false) boolean throttled) {
            throttled = throttled(asked, throttled);
        }
    }
}
