package testbed.defects.throttle;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import org.apache.kafka.common.metrics.MetricConfig;

import java.util.List;

/** Both throttles keep twice the samples, so that they average over a window twice as long. */
public final class ThrottleWindowDoubled implements Defect {
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        return List.of(Target.of(OnConfig.class).in(Leak.MANAGER, "getQuotaMetricConfig", "Quota"));
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        ThrottleWindowDoubled.effect = effect;
    }

    /** Doubles the samples. */
    public static void doubled(MetricConfig config) {
        int samples = config.samples();
        config.samples(2 * samples);
        effect.acted("%d samples in place of %d".formatted(config.samples(), samples));
    }

    /** Changes what {@code ReplicationQuotaManager.getQuotaMetricConfig} returns. */
    public static final class OnConfig {
        @Advice.OnMethodExit
        static void exit(@Advice.Return MetricConfig config) {
            doubled(config);
        }
    }
}
