package testbed.tiered;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/**
 * The objects of one segment: <code>PREFIX TOPIC-TOPICID/PARTITION/BASEOFFSET-SEGMENTID.SUFFIX</code>.
 *
 * <p>A key follows from the segment's metadata alone, so nothing has to be listed in order to read or to delete it; and
 * who lists a bucket can tell by the segment's id what belongs together (testbed/tiered/segments.py reads it so).
 */
final class Keys {
    private static final Map<IndexType, String> SUFFIXES = new EnumMap<>(Map.of(
            IndexType.OFFSET, "index",
            IndexType.TIMESTAMP, "timeindex",
            IndexType.TRANSACTION, "txnindex",
            IndexType.PRODUCER_SNAPSHOT, "snapshot",
            IndexType.LEADER_EPOCH, "epochs"));

    private final String stem;

    Keys(String prefix, RemoteLogSegmentMetadata segment) {
        TopicIdPartition of = segment.topicIdPartition();
        stem = String.format(
                "%s%s-%s/%d/%020d-%s",
                prefix, of.topic(), of.topicId(), of.partition(), segment.startOffset(), segment.remoteLogSegmentId().id());
    }

    String log() {
        return stem + ".log";
    }

    String index(IndexType type) {
        return stem + "." + SUFFIXES.get(type);
    }

    /** Every object that a segment can have. */
    List<String> all() {
        return Stream.concat(Stream.of(log()), SUFFIXES.keySet().stream().map(this::index)).toList();
    }
}
