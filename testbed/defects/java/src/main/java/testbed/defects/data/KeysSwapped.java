package testbed.defects.data;

import java.util.Arrays;
import java.util.List;

/** A follower swaps two keys in one uncompressed batch in so many; the checksum is made valid. */
public final class KeysSwapped extends FollowerAppend {
    @Override
    Spoiled spoiled(List<Batch> batches) {
        for (Batch each : batches) {
            List<Entry> entries = each.entries();
            for (int at = 0; at + 1 < entries.size(); at++) {
                Entry first = entries.get(at);
                Entry second = entries.get(at + 1);
                if (!Arrays.equals(first.key(), second.key())) {
                    entries.set(at, first.withKey(second.key()));
                    entries.set(at + 1, second.withKey(first.key()));
                    return replaced(batches, each, each.with(entries));
                }
            }
        }
        return null;
    }
}
