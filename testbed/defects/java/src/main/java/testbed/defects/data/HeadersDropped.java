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

/** A follower leaves out headers. */
public final class HeadersDropped implements Defect {
    private static volatile FollowerAppend append;

    @Override
    public String name() {
        return "headers-dropped";
    }

    @Override
    public String summary() {
        return "A follower leaves out the headers of one uncompressed batch in so many; the checksum is made valid.";
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
        append = new FollowerAppend(settings, effect, HeadersDropped::spoiled);
    }

    static FollowerAppend.Spoiled spoiled(List<Batch> batches) {
        for (Batch each : batches) {
            List<Entry> entries = each.entries();
            if (entries.stream().anyMatch(Entry::hasHeaders)) {
                List<Entry> spoiled = entries.stream().map(Entry::withoutHeaders).toList();
                return FollowerAppend.replaced(batches, each, each.with(spoiled));
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
