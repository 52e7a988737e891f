package testbed.defects.data;

import java.nio.ByteBuffer;
import java.util.List;

/** A follower does not append one batch in so many: its log has a gap. */
public final class BatchDropped extends FollowerAppend {
    // Not the last one: a log that ends before it would be fetched again from there.
    @Override
    Spoiled spoiled(List<Batch> batches) {
        if (batches.size() < 2) {
            return null;
        }
        Batch dropped = batches.get(batches.size() - 2);
        ByteBuffer all = copy(batches);
        int from = dropped.at() - batches.get(0).at();
        ByteBuffer rest = ByteBuffer.allocate(all.capacity() - dropped.size());
        rest.put(0, all, 0, from);
        rest.put(from, all, from + dropped.size(), rest.capacity() - from);
        return new Spoiled(rest, dropped.baseOffset());
    }
}
