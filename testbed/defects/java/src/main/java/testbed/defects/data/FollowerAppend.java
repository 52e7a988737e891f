package testbed.defects.data;

import testbed.defects.Effect;
import testbed.defects.Kafka;
import testbed.defects.Parameter;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;
import testbed.defects.Topics;

import java.nio.ByteBuffer;
import java.util.List;

/** Spoils one batch in so many of what followers append to users' topics. */
final class FollowerAppend {
    static final Parameter EVERY = Parameter.whole("every", 200, 1, Long.MAX_VALUE);

    static final Reads READS = Reads.nothing()
            .of(Kafka.PARTITION, "topic", "topicPartition")
            .of(Kafka.MEMORY_RECORDS, "buffer", "readableRecords");

    /** What a follower appends in place of what it fetched, and the first offset that differs. */
    record Spoiled(ByteBuffer bytes, long offset) {}

    /** Spoils one of the batches that a follower fetched. */
    interface Spoiler {
        /** Returns what is appended, in bytes of its own; null when none of these batches can be spoiled. */
        Spoiled spoiled(List<Batch> batches);
    }

    private final long every;
    private final Effect effect;
    private final Spoiler spoiler;
    private long seen;

    FollowerAppend(Settings settings, Effect effect, Spoiler spoiler) {
        this.every = settings.whole(EVERY.name());
        this.effect = effect;
        this.spoiler = spoiler;
    }

    static Target target(Class<?> advice) {
        return Target.of(advice)
                .in(
                        "kafka.cluster.Partition",
                        "doAppendRecordsToFollowerOrFutureReplica",
                        "MemoryRecords",
                        "boolean",
                        "int");
    }

    /** Returns the records that are appended: an object of the same class. */
    Object appended(Object partition, Object records, boolean isFuture) {
        if (isFuture || !Topics.isOfUser((String) Reflect.call(partition, "topic"))) {
            return records;
        }
        Spoiled spoiled = spoiled((ByteBuffer) Reflect.call(records, "buffer"));
        if (spoiled == null) {
            return records;
        }
        effect.acted("%s at offset %d".formatted(Reflect.call(partition, "topicPartition"), spoiled.offset()));
        return Reflect.callStatic(records.getClass(), "readableRecords", spoiled.bytes());
    }

    // What cannot be spoiled now leaves the turn to the next fetch.
    synchronized Spoiled spoiled(ByteBuffer fetched) {
        List<Batch> batches = Batch.in(fetched);
        seen += batches.size();
        if (seen < every || batches.isEmpty()) {
            return null;
        }
        Spoiled spoiled = spoiler.spoiled(batches);
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
}
