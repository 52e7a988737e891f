package testbed.defects.data;

import java.nio.ByteBuffer;
import java.util.List;

/** A follower flips one bit of a value in one uncompressed batch in so many; the checksum is made valid. */
public final class BitFlipped extends FollowerAppend {
    @Override
    Spoiled spoiled(List<Batch> batches) {
        ByteBuffer all = copy(batches);
        for (Batch each : Batch.in(all)) {
            if (each.flipBit()) {
                return new Spoiled(all, each.baseOffset());
            }
        }
        return null;
    }
}
