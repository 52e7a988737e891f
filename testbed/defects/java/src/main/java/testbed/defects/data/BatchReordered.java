package testbed.defects.data;

import java.nio.ByteBuffer;
import java.util.List;

/** A follower appends two batches in the wrong order, once in so many batches; the offsets stay in order. */
public final class BatchReordered extends FollowerAppend {
    @Override
    Spoiled spoiled(List<Batch> batches) {
        for (int at = 0; at + 1 < batches.size(); at++) {
            Batch first = batches.get(at);
            Batch second = batches.get(at + 1);
            // A batch's leader epoch stays in front of it: epochs must not go back.
            if (first.nextOffset() == second.baseOffset()
                    && first.leaderEpoch() == second.leaderEpoch()
                    && !first.isControl()
                    && !second.isControl()) {
                ByteBuffer all = copy(batches);
                int from = first.at() - batches.get(0).at();
                long offset = first.baseOffset();
                Batch nowFirst = second.copied().setBaseOffset(offset);
                Batch nowSecond = first.copied().setBaseOffset(nowFirst.nextOffset());
                all.put(from, nowFirst.bytes(), 0, nowFirst.size());
                all.put(from + nowFirst.size(), nowSecond.bytes(), 0, nowSecond.size());
                return new Spoiled(all, offset);
            }
        }
        return null;
    }
}
