package testbed.defects.data;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Reads;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

import java.util.List;

/** A follower changes timestamps. */
public final class TimestampChanged implements Defect {
    private static volatile FollowerAppend append;

    @Override
    public String name() {
        return "timestamp-changed";
    }

    @Override
    public String summary() {
        return "A follower makes the records of one batch in so many a second older; the checksum is made valid.";
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
        append = new FollowerAppend(settings, effect, TimestampChanged::spoiled);
    }

    static FollowerAppend.Spoiled spoiled(List<Batch> batches) {
        for (Batch each : batches) {
            if (!each.isControl()) {
                return FollowerAppend.replaced(batches, each, each.copied().addTime(-1000));
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
