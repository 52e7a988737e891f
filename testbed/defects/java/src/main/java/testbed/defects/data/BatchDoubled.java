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

import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** A leader appends one produced batch in so many a second time, without its producer. */
public final class BatchDoubled implements Defect {
    private static final String APPEND = "appendAsLeader";
    private static final AtomicLong SEEN = new AtomicLong();
    private static final ThreadLocal<Boolean> AGAIN = ThreadLocal.withInitial(() -> false);
    private static volatile long every;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(FollowerAppend.EVERY);
    }

    @Override
    public List<Target> targets() {
        return List.of(Target.of(OnAppend.class)
                .in(
                        "org.apache.kafka.storage.internals.log.UnifiedLog",
                        APPEND,
                        "MemoryRecords",
                        "int",
                        "AppendOrigin",
                        "RequestLocal",
                        "VerificationGuard",
                        "short")
                .in(
                        "kafka.log.UnifiedLog",
                        APPEND,
                        "MemoryRecords",
                        "int",
                        "AppendOrigin",
                        "MetadataVersion",
                        "RequestLocal",
                        "VerificationGuard"));
    }

    @Override
    public Reads reads() {
        return Reads.nothing()
                .of(Kafka.LOG, "topicPartition", "logEndOffset")
                .of(Kafka.MEMORY_RECORDS, "buffer", "readableRecords");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        every = settings.whole(FollowerAppend.EVERY.name());
        BatchDoubled.effect = effect;
    }

    /** Appends a copy of the first batch with the same arguments, when it is its turn. */
    public static void again(Object log, Object[] arguments) {
        TopicPartition partition = (TopicPartition) Reflect.call(log, "topicPartition");
        if (AGAIN.get() || !Topics.isOfUser(partition.topic()) || !arguments[2].toString().equals("CLIENT")) {
            return;
        }
        ByteBuffer copy = copied((ByteBuffer) Reflect.call(arguments[0], "buffer"));
        if (copy == null || SEEN.incrementAndGet() < every) {
            return;
        }
        SEEN.set(0);
        Object[] second = arguments.clone();
        second[0] = Reflect.callStatic(arguments[0].getClass(), "readableRecords", copy);
        AGAIN.set(true);
        try {
            Reflect.call(log, APPEND, second);
        } finally {
            AGAIN.remove();
        }
        effect.acted("%s before offset %s".formatted(partition, Reflect.call(log, "logEndOffset")));
    }

    // A leader gives offsets to records that are numbered from 0.
    static ByteBuffer copied(ByteBuffer produced) {
        List<Batch> batches = Batch.in(produced);
        if (batches.isEmpty() || batches.get(0).isControl()) {
            return null;
        }
        return batches.get(0).copied().setBaseOffset(0).setNoProducer().bytes();
    }

    /** Runs before {@code UnifiedLog.appendAsLeader} returns. */
    public static final class OnAppend {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object log, @Advice.AllArguments Object[] arguments) {
            again(log, arguments);
        }
    }
}
