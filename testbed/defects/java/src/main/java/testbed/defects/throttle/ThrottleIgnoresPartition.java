package testbed.defects.throttle;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.OnePartition;
import testbed.defects.Parameter;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import org.apache.kafka.common.TopicPartition;

import java.util.List;

/** Partitions of one number are not throttled though they are listed. */
public final class ThrottleIgnoresPartition implements Defect {
    private static volatile OnePartition ignored;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return OnePartition.PARAMETERS;
    }

    @Override
    public List<Target> targets() {
        return List.of(Target.of(OnThrottled.class).in(Leak.MANAGER, "isThrottled", "TopicPartition"));
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        ignored = OnePartition.of(settings);
        ThrottleIgnoresPartition.effect = effect;
    }

    /** Returns whether the partition is throttled. */
    public static boolean throttled(TopicPartition asked, boolean throttled) {
        if (!throttled || !ignored.is(asked.topic(), asked.partition())) {
            return throttled;
        }
        effect.acted("%s not throttled".formatted(asked));
        return false;
    }

    /** Replaces the answer of {@code ReplicationQuotaManager.isThrottled}. */
    public static final class OnThrottled {
        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) TopicPartition asked, @Advice.Return(readOnly = false) boolean throttled) {
            throttled = throttled(asked, throttled);
        }
    }
}
