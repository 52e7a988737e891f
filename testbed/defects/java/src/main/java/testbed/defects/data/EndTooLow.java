package testbed.defects.data;

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

/** A leader answers clients that ask for the end of its log with an offset so many records below. */
public final class EndTooLow implements Defect {
    private static final String ANSWER = "FileRecords$TimestampAndOffset";
    private static final long LATEST = -1;
    private static final ThreadLocal<Object> ASKED = new ThreadLocal<>();
    private static volatile long records;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.whole("records", 100, 1, Integer.MAX_VALUE));
    }

    @Override
    public List<Target> targets() {
        return List.of(
                Target.of(OnAsk.class)
                        .in(
                                Kafka.PARTITION,
                                "fetchOffsetForTimestamp",
                                "long",
                                "Option",
                                "Optional",
                                "boolean",
                                "Option"),
                Target.of(OnAnswer.class)
                        .in("org.apache.kafka.common.record.internal." + ANSWER, "<init>", "long", "long", "Optional")
                        .in("org.apache.kafka.common.record." + ANSWER, "<init>", "long", "long", "Optional"));
    }

    @Override
    public Reads reads() {
        return Reads.nothing().of(Kafka.PARTITION, "topicPartition", "log").of(Kafka.LOG, "logStartOffset");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        records = settings.whole("records");
        EndTooLow.effect = effect;
    }

    /** Keeps the partition of which this thread looks up an end for a client. Followers give no isolation. */
    public static void asked(Object partition, long timestamp, Object isolation) {
        if (timestamp == LATEST && !(boolean) Reflect.call(isolation, "isEmpty")) {
            ASKED.set(partition);
        }
    }

    /** Ends that. */
    public static void answered() {
        ASKED.remove();
    }

    /** Returns the offset of an answer; never below the start of the log. */
    public static long lowered(long end) {
        Object partition = ASKED.get();
        if (partition == null) {
            return end;
        }
        TopicPartition asked = (TopicPartition) Reflect.call(partition, "topicPartition");
        Object log = Reflect.call(partition, "log");
        if (!Topics.isOfUser(asked.topic()) || (boolean) Reflect.call(log, "isEmpty")) {
            return end;
        }
        long start = (long) Reflect.call(Reflect.call(log, "get"), "logStartOffset");
        long lowered = Math.max(Math.min(start, end), end - records);
        if (lowered < end) {
            effect.acted("the end of %s: %d in place of %d".formatted(asked, lowered, end));
        }
        return lowered;
    }

    /** Surrounds {@code Partition.fetchOffsetForTimestamp}. */
    public static final class OnAsk {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.This Object partition, @Advice.Argument(0) long timestamp, @Advice.Argument(1) Object isolation) {
            asked(partition, timestamp, isolation);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit() {
            answered();
        }
    }

    /** Changes the offset with which a {@code TimestampAndOffset} is made. */
    public static final class OnAnswer {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) long offset) {
            offset = lowered(offset);
        }
    }
}
