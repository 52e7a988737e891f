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

/** A follower swaps two batches. */
public final class BatchReordered implements Defect {
    private static volatile FollowerAppend append;

    @Override
    public String name() {
        return "batch-reordered";
    }

    @Override
    public String summary() {
        return "A follower appends two batches in the wrong order, once in so many batches; the offsets stay in order.";
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
        append = new FollowerAppend(settings, effect, BatchReordered::spoiled);
    }

    static FollowerAppend.Spoiled spoiled(List<Batch> batches) {
        for (int at = 0; at + 1 < batches.size(); at++) {
            Batch first = batches.get(at);
            Batch second = batches.get(at + 1);
            // A batch's leader epoch stays in front of it: epochs must not go back.
            if (first.nextOffset() == second.baseOffset()
                    && first.leaderEpoch() == second.leaderEpoch()
                    && !first.isControl()
                    && !second.isControl()) {
                ByteBuffer all = FollowerAppend.copy(batches);
                int from = first.at() - batches.get(0).at();
                long offset = first.baseOffset();
                Batch nowFirst = second.copied().setBaseOffset(offset);
                Batch nowSecond = first.copied().setBaseOffset(nowFirst.nextOffset());
                all.put(from, nowFirst.bytes(), 0, nowFirst.size());
                all.put(from + nowFirst.size(), nowSecond.bytes(), 0, nowSecond.size());
                return new FollowerAppend.Spoiled(all, offset);
            }
        }
        return null;
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
