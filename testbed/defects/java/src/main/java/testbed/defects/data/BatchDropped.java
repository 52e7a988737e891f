package testbed.defects.data;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Reads;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

import java.nio.ByteBuffer;
import java.util.List;

/** A follower leaves out a batch. */
public final class BatchDropped implements Defect {
    private static volatile FollowerAppend append;

    @Override
    public String name() {
        return "batch-dropped";
    }

    @Override
    public String summary() {
        return "A follower does not append one batch in so many: its log has a gap.";
    }

    @Override
    public List<Parameter> parameters() {
        return List.of(FollowerAppend.EVERY);
    }

    @Override
    public List<Target> targets() {
        return List.of(FollowerAppend.target(OnAppend.class));
    }

    @Override
    public Reads reads() {
        return FollowerAppend.READS;
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        append = new FollowerAppend(settings, effect, BatchDropped::spoiled);
    }

    // Not the last one: a log that ends before it would be fetched again from there.
    static FollowerAppend.Spoiled spoiled(List<Batch> batches) {
        if (batches.size() < 2) {
            return null;
        }
        Batch dropped = batches.get(batches.size() - 2);
        ByteBuffer all = FollowerAppend.copy(batches);
        int from = dropped.at() - batches.get(0).at();
        ByteBuffer rest = ByteBuffer.allocate(all.capacity() - dropped.size());
        rest.put(0, all, 0, from);
        rest.put(from, all, from + dropped.size(), rest.capacity() - from);
        return new FollowerAppend.Spoiled(rest, dropped.baseOffset());
    }

    /** Returns the records that the follower appends. */
    public static Object appended(Object partition, Object records, boolean isFuture) {
        return append.appended(partition, records, isFuture);
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
