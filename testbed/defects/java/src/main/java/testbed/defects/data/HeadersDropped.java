package testbed.defects.data;

import java.util.List;

/** A follower leaves out the headers of one uncompressed batch in so many; the checksum is made valid. */
public final class HeadersDropped extends FollowerAppend {
    @Override
    Spoiled spoiled(List<Batch> batches) {
        for (Batch each : batches) {
            List<Entry> entries = each.entries();
            if (entries.stream().anyMatch(Entry::hasHeaders)) {
                List<Entry> spoiled = entries.stream().map(Entry::withoutHeaders).toList();
                return replaced(batches, each, each.with(spoiled));
            }
        }
        return null;
    }
}
