package testbed.defects.data;

import java.util.List;

/** A follower makes the records of one batch in so many a second older; the checksum is made valid. */
public final class TimestampChanged extends FollowerAppend {
    @Override
    Spoiled spoiled(List<Batch> batches) {
        for (Batch each : batches) {
            if (!each.isControl()) {
                return replaced(batches, each, each.copied().addTime(-1000));
            }
        }
        return null;
    }
}
