package testbed.defects.pace;

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

import org.apache.kafka.common.TopicPartition;

import java.util.List;

/** Each append to a log, on leaders and followers, takes some percent longer, as busy time. */
public final class AppendSlow implements Defect {
    private static volatile double share;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.number("percent", 10, 0, 100_000));
    }

    @Override
    public List<Target> targets() {
        return List.of(target(OnAppend.class));
    }

    @Override
    public Reads reads() {
        return Reads.nothing().of(Kafka.LOG, "topicPartition");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        share = settings.number("percent") / 100;
        AppendSlow.effect = effect;
    }

    /** Returns the target in which a log appends records, of a leader or a follower. */
    public static Target target(Class<?> advice) {
        return Target.of(advice)
                .in(
                        "org.apache.kafka.storage.internals.log.UnifiedLog",
                        "append",
                        "MemoryRecords",
                        "AppendOrigin",
                        "boolean",
                        "int",
                        "Optional",
                        "VerificationGuard",
                        "boolean",
                        "byte",
                        "short")
                .in(
                        "kafka.log.UnifiedLog",
                        "append",
                        "MemoryRecords",
                        "AppendOrigin",
                        "MetadataVersion",
                        "boolean",
                        "int",
                        "Option",
                        "VerificationGuard",
                        "boolean");
    }

    /** Is busy for its share of the time since {@code begunNs}. */
    public static void spin(Object log, long begunNs) {
        long now = System.nanoTime();
        long extra = (long) ((now - begunNs) * share);
        if (extra <= 0 || !Topics.isOfUser(((TopicPartition) Reflect.call(log, "topicPartition")).topic())) {
            return;
        }
        while (System.nanoTime() - now < extra) {
            Thread.onSpinWait();
        }
        effect.acted("an append of %d us took %d us longer".formatted((now - begunNs) / 1000, extra / 1000));
    }

    /** Runs before {@code UnifiedLog.append} returns. */
    public static final class OnAppend {
        @Advice.OnMethodEnter
        static long enter() {
            return System.nanoTime();
        }

        @Advice.OnMethodExit
        static void exit(@Advice.This Object log, @Advice.Enter long begunNs) {
            spin(log, begunNs);
        }
    }
}
