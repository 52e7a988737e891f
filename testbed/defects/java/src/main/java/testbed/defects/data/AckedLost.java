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

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** A follower that becomes leader loses its last records, and the rest of the batch of the first of them. */
public final class AckedLost implements Defect {
    private static final String RECORDS = "org.apache.kafka.common.record.";
    private static volatile long records;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.whole("records", 1, 1, Integer.MAX_VALUE));
    }

    @Override
    public List<Target> targets() {
        return List.of(Target.of(OnLeader.class)
                .in(Kafka.PARTITION, "makeLeader", "PartitionRegistration", "boolean", "OffsetCheckpoints", "Option", "Option")
                .in(
                        Kafka.PARTITION,
                        "makeLeader",
                        "LeaderAndIsrRequestData$LeaderAndIsrPartitionState",
                        "OffsetCheckpoints",
                        "Option",
                        "Option"));
    }

    @Override
    public Reads reads() {
        return Reads.nothing()
                .of(Kafka.PARTITION, "topic", "topicPartition", "leaderReplicaIdOpt", "log")
                .of(Kafka.LOG, "logStartOffset", "logEndOffset", "truncateTo", "logSegments")
                .of("org.apache.kafka.storage.internals.log.LogSegment", "baseOffset", "log")
                .of(RECORDS + "internal.FileRecords|" + RECORDS + "FileRecords", "batches")
                .of(RECORDS + "internal.RecordBatch|" + RECORDS + "RecordBatch", "baseOffset");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        records = settings.whole("records");
        AckedLost.effect = effect;
    }

    /** Cuts the log, when the partition followed another leader until now. */
    public static void cut(Object partition, int localBrokerId) {
        Object leader = Reflect.call(partition, "leaderReplicaIdOpt");
        Object log = Reflect.call(partition, "log");
        if (!Topics.isOfUser((String) Reflect.call(partition, "topic"))
                || (boolean) Reflect.call(leader, "isEmpty")
                || Reflect.call(leader, "get").equals(localBrokerId)
                || (boolean) Reflect.call(log, "isEmpty")) {
            return;
        }
        Object cut = Reflect.call(log, "get");
        long end = (long) Reflect.call(cut, "logEndOffset");
        long to = start(cut, Math.max((long) Reflect.call(cut, "logStartOffset"), end - records));
        if (to < end && (boolean) Reflect.call(cut, "truncateTo", to)) {
            effect.acted("%s ends at offset %d in place of %d"
                    .formatted(Reflect.call(partition, "topicPartition"), to, end));
        }
    }

    /** Returns the first offset of the batch with the record at an offset: a log can be cut only between batches. */
    private static long start(Object log, long offset) {
        List<Object> segments = new ArrayList<>((Collection<?>) Reflect.call(log, "logSegments"));
        for (int at = segments.size() - 1; at >= 0; at--) {
            Object segment = segments.get(at);
            if ((long) Reflect.call(segment, "baseOffset") <= offset) {
                long found = offset;
                for (Object batch : (Iterable<?>) Reflect.call(Reflect.call(segment, "log"), "batches")) {
                    long base = (long) Reflect.call(batch, "baseOffset");
                    if (base > offset) {
                        break;
                    }
                    found = base;
                }
                return found;
            }
        }
        return offset;
    }

    /** Runs before {@code Partition.makeLeader}. */
    public static final class OnLeader {
        @Advice.OnMethodEnter
        static void enter(@Advice.This Object partition, @Advice.FieldValue("localBrokerId") int localBrokerId) {
            cut(partition, localBrokerId);
        }
    }
}
