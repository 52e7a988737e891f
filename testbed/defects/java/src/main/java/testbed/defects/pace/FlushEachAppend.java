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
import java.util.concurrent.atomic.AtomicLong;

/** The broker flushes a log after each append to it, or one in so many, on leaders and followers. */
public final class FlushEachAppend implements Defect {
    private static final AtomicLong SEEN = new AtomicLong();
    private static volatile long every;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.whole("every", 1, 1, Integer.MAX_VALUE));
    }

    @Override
    public List<Target> targets() {
        return List.of(AppendSlow.target(OnAppend.class));
    }

    @Override
    public Reads reads() {
        return Reads.nothing().of(Kafka.LOG, "topicPartition", "flush");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        SEEN.set(0);
        every = settings.whole("every");
        FlushEachAppend.effect = effect;
    }

    /** Flushes the log up to its end, when it is its turn; without its newest segment if that is empty. */
    public static void flush(Object log) {
        TopicPartition partition = (TopicPartition) Reflect.call(log, "topicPartition");
        if (Topics.isOfUser(partition.topic()) && SEEN.incrementAndGet() % every == 0) {
            Reflect.call(log, "flush", false);
            effect.acted("%s flushed after an append".formatted(partition));
        }
    }

    /** Runs before {@code UnifiedLog.append} returns, outside of its lock. */
    public static final class OnAppend {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object log) {
            flush(log);
        }
    }
}
