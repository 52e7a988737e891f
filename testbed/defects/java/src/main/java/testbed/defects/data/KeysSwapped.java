package testbed.defects.data;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Reads;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

import java.util.Arrays;
import java.util.List;

/** A follower swaps two keys. */
public final class KeysSwapped implements Defect {
    private static volatile FollowerAppend append;

    @Override
    public String name() {
        return "keys-swapped";
    }

    @Override
    public String summary() {
        return "A follower swaps two keys in one uncompressed batch in so many; the checksum is made valid.";
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
        append = new FollowerAppend(settings, effect, KeysSwapped::spoiled);
    }

    static FollowerAppend.Spoiled spoiled(List<Batch> batches) {
        for (Batch each : batches) {
            List<Entry> entries = each.entries();
            for (int at = 0; at + 1 < entries.size(); at++) {
                Entry first = entries.get(at);
                Entry second = entries.get(at + 1);
                if (!Arrays.equals(first.key(), second.key())) {
                    entries.set(at, first.withKey(second.key()));
                    entries.set(at + 1, second.withKey(first.key()));
                    return FollowerAppend.replaced(batches, each, each.with(entries));
                }
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
