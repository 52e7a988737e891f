package testbed.defects.data;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Kafka;
import testbed.defects.OnePartition;
import testbed.defects.Parameter;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

import org.apache.kafka.common.TopicPartition;

import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;

/**
 * A leader never gives consumers the newest records of a partition, nor the rest of the batch of the first of them.
 * Followers get them.
 */
public final class RecordsWithheld implements Defect {
    private static final String STORAGE = "org.apache.kafka.storage.internals.log.";
    private static final ThreadLocal<Object> READ = new ThreadLocal<>();
    private static volatile OnePartition withheld;
    private static volatile long records;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        List<Parameter> all = new ArrayList<>(OnePartition.PARAMETERS);
        all.add(Parameter.whole("records", 1, 1, Integer.MAX_VALUE));
        return all;
    }

    @Override
    public List<Target> targets() {
        return List.of(
                Target.of(OnRead.class)
                        .in(STORAGE + "UnifiedLog", "read", "long", "int", "FetchIsolation", "boolean")
                        .in("kafka.log.UnifiedLog", "read", "long", "int", "FetchIsolation", "boolean"),
                Target.of(OnReadTo.class)
                        .in(STORAGE + "LocalLog", "read", "long", "int", "boolean", "LogOffsetMetadata", "boolean")
                        .in("kafka.log.LocalLog", "read", "long", "int", "boolean", "LogOffsetMetadata", "boolean"),
                Target.of(OnSnapshot.class).in(Kafka.PARTITION, "fetchOffsetSnapshot", "Optional", "boolean"));
    }

    @Override
    public Reads reads() {
        return Reads.nothing()
                .of(Kafka.PARTITION, "topicPartition", "log")
                .of(Kafka.LOG, "topicPartition", "logStartOffset", "highWatermark", "localLog")
                .of(STORAGE + "LocalLog|kafka.log.LocalLog", "convertToOffsetMetadataOrThrow")
                .of(STORAGE + "FetchDataInfo", "records")
                .of(STORAGE + "LogOffsetMetadata", "messageOffset")
                .of(STORAGE + "LogOffsetSnapshot", "logStartOffset", "logEndOffset", "highWatermark", "lastStableOffset");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        withheld = OnePartition.of(settings);
        records = settings.whole("records");
        RecordsWithheld.effect = effect;
    }

    /** Keeps the log that this thread reads for a consumer; followers read up to the log's end. */
    public static void reading(Object log, Object isolation) {
        if (!isolation.toString().equals("LOG_END") && isWithheld(log)) {
            READ.set(log);
        }
    }

    /** Returns the end up to which the log is read. Only once: the lookup of an offset's place reads the log, too. */
    public static Object end(Object end) {
        Object log = READ.get();
        READ.remove();
        return log == null ? end : lowered(log, end);
    }

    /** Ends the read; notes it when a consumer got nothing, although there are records for it. */
    public static void read(Object log, long offset, Object isolation, Object found) {
        READ.remove();
        if (found == null || isolation.toString().equals("LOG_END") || !isWithheld(log)) {
            return;
        }
        int bytes = (int) Reflect.call(Reflect.get(found, "records"), "sizeInBytes");
        long committed = (long) Reflect.call(log, "highWatermark");
        if (bytes == 0 && offset < committed) {
            effect.acted("%s: nothing from offset %d, of records up to %d"
                    .formatted(Reflect.call(log, "topicPartition"), offset, committed));
        }
    }

    /** Returns the ends for which a consumer's fetch waits. With the real ones each fetch would be answered at once. */
    public static Object snapshot(Object partition, Object ends) {
        Object log = Reflect.call(partition, "log");
        if (!isWithheld(partition) || (boolean) Reflect.call(log, "isEmpty")) {
            return ends;
        }
        Object read = Reflect.call(log, "get");
        return Reflect.made(
                ends.getClass(),
                Reflect.get(ends, "logStartOffset"),
                Reflect.get(ends, "logEndOffset"),
                lowered(read, Reflect.get(ends, "highWatermark")),
                lowered(read, Reflect.get(ends, "lastStableOffset")));
    }

    private static boolean isWithheld(Object logOrPartition) {
        TopicPartition asked = (TopicPartition) Reflect.call(logOrPartition, "topicPartition");
        return withheld.is(asked.topic(), asked.partition());
    }

    /** Returns the place of the first record that is withheld: never before the start of the log. */
    private static Object lowered(Object log, Object end) {
        long offset = (long) Reflect.get(end, "messageOffset");
        long lowered = Math.max((long) Reflect.call(log, "logStartOffset"), offset - records);
        if (lowered >= offset) {
            return end;
        }
        try {
            return Reflect.attempt(Reflect.get(log, "localLog"), "convertToOffsetMetadataOrThrow", lowered);
        } catch (InvocationTargetException gone) {
            // The log was truncated or removed meanwhile. Kafka finds that out, too.
            return end;
        }
    }

    /** Surrounds {@code UnifiedLog.read}. */
    public static final class OnRead {
        @Advice.OnMethodEnter
        static void enter(@Advice.This Object log, @Advice.Argument(2) Object isolation) {
            reading(log, isolation);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(
                @Advice.This Object log,
                @Advice.Argument(0) long offset,
                @Advice.Argument(2) Object isolation,
                @Advice.Return Object found) {
            read(log, offset, isolation, found);
        }
    }

    /** Changes the end that {@code LocalLog.read} gets. */
    public static final class OnReadTo {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(value = 3, readOnly = false, typing = Assigner.Typing.DYNAMIC) Object end) {
            end = end(end);
        }
    }

    /** Changes what {@code Partition.fetchOffsetSnapshot} returns. */
    public static final class OnSnapshot {
        @Advice.OnMethodExit
        static void exit(
                @Advice.This Object partition,
                @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object ends) {
            ends = snapshot(partition, ends);
        }
    }
}
