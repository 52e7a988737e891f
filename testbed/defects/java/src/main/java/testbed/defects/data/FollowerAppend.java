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
import net.bytebuddy.implementation.bytecode.assign.Assigner;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A defect that spoils one batch in so many of what followers append to users' topics. */
public abstract class FollowerAppend implements Defect {
    static final Parameter EVERY = Parameter.whole("every", 200, 1, Long.MAX_VALUE);

    private static final List<FollowerAppend> BEGUN = new CopyOnWriteArrayList<>();

    /** What a follower appends in place of what it fetched, and the first offset that differs. */
    record Spoiled(ByteBuffer bytes, long offset) {}

    private long every;
    private Effect effect;
    private long seen;

    /** Returns what is appended, in bytes of its own; null when none of these batches can be spoiled. */
    abstract Spoiled spoiled(List<Batch> batches);

    @Override
    public List<Parameter> parameters() {
        return List.of(EVERY);
    }

    @Override
    public List<Target> targets() {
        return List.of(Target.of(OnAppend.class)
                .in(
                        "kafka.cluster.Partition",
                        "doAppendRecordsToFollowerOrFutureReplica",
                        "MemoryRecords",
                        "boolean",
                        "int"));
    }

    @Override
    public Reads reads() {
        return Reads.nothing()
                .of(Kafka.PARTITION, "topic", "topicPartition")
                .of(Kafka.MEMORY_RECORDS, "buffer", "readableRecords");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        this.every = settings.whole(EVERY.name());
        this.effect = effect;
        BEGUN.add(this);
    }

    /** Returns the records that are appended, spoiled by each defect in turn: an object of the same class. */
    public static Object appended(Object partition, Object records, boolean isFuture) {
        if (isFuture || !Topics.isOfUser((String) Reflect.call(partition, "topic"))) {
            return records;
        }
        Object appended = records;
        for (FollowerAppend each : BEGUN) {
            Spoiled spoiled = each.spoiled((ByteBuffer) Reflect.call(appended, "buffer"));
            if (spoiled != null) {
                each.effect.acted("%s at offset %d".formatted(Reflect.call(partition, "topicPartition"), spoiled.offset()));
                appended = Reflect.callStatic(records.getClass(), "readableRecords", spoiled.bytes());
            }
        }
        return appended;
    }

    // What cannot be spoiled now leaves the turn to the next fetch.
    synchronized Spoiled spoiled(ByteBuffer fetched) {
        List<Batch> batches = Batch.in(fetched);
        seen += batches.size();
        if (seen < every || batches.isEmpty()) {
            return null;
        }
        Spoiled spoiled = spoiled(batches);
        if (spoiled != null) {
            seen = 0;
        }
        return spoiled;
    }

    /** Returns all batches with another one, in bytes of its own, in place of one of them. */
    static Spoiled replaced(List<Batch> batches, Batch old, Batch other) {
        ByteBuffer all = copy(batches);
        int from = old.at() - batches.get(0).at();
        int rest = from + old.size();
        ByteBuffer spoiled = ByteBuffer.allocate(all.capacity() - old.size() + other.size());
        spoiled.put(0, all, 0, from);
        spoiled.put(from, other.bytes(), 0, other.size());
        spoiled.put(from + other.size(), all, rest, all.capacity() - rest);
        return new Spoiled(spoiled, old.baseOffset());
    }

    /** Returns a copy of all batches. */
    static ByteBuffer copy(List<Batch> batches) {
        Batch first = batches.get(0);
        Batch last = batches.get(batches.size() - 1);
        int size = last.at() + last.size() - first.at();
        ByteBuffer copy = ByteBuffer.allocate(size);
        copy.put(0, first.bytes(), first.at(), size);
        return copy;
    }

    /** Replaces the records that {@code Partition.doAppendRecordsToFollowerOrFutureReplica} gets. */
    public static final class OnAppend {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.This Object partition,
                @Advice.Argument(value = 0, readOnly = false, typing = Assigner.Typing.DYNAMIC) Object records,
                @Advice.Argument(1) boolean isFuture) {
            records = appended(partition, records, isFuture);
        }
    }
}
