package testbed.defects.pace;

import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Target;
import testbed.defects.Topics;

import org.apache.kafka.common.TopicPartition;

import java.util.Iterator;
import java.util.Map;

/** The followers' fetches: where they are sent, and what an answer contains. */
public final class Fetches {
    /** The request that a follower sends. */
    public static final String REQUEST = "org.apache.kafka.common.requests.FetchRequest$Builder";

    /** What {@link #bytes} reads. */
    public static final Reads READS = Reads.nothing()
            .of("org.apache.kafka.common.message.FetchResponseData$PartitionData", "records")
            .of(
                    "org.apache.kafka.common.record.internal.BaseRecords|org.apache.kafka.common.record.BaseRecords",
                    "sizeInBytes");

    private Fetches() {}

    /** Returns the target in which a follower sends a fetch to a leader and gets the answer. */
    public static Target target(Class<?> advice) {
        return Target.of(advice).in("kafka.server.RemoteLeaderEndPoint", "fetch", "FetchRequest$Builder");
    }

    /** Returns the bytes of users' topics in an answer: Java's map of partition to data, or Scala's before Kafka 4. */
    public static long bytes(Object answer) {
        long bytes = 0;
        if (answer instanceof Map<?, ?> map) {
            for (Map.Entry<?, ?> each : map.entrySet()) {
                bytes += bytes(each.getKey(), each.getValue());
            }
            return bytes;
        }
        Object pairs = Reflect.call(answer, "iterator");
        while ((boolean) Reflect.call(pairs, "hasNext")) {
            Object pair = Reflect.call(pairs, "next");
            bytes += bytes(Reflect.call(pair, "_1"), Reflect.call(pair, "_2"));
        }
        return bytes;
    }

    private static long bytes(Object partition, Object data) {
        Object records = Reflect.call(data, "records");
        if (records == null || !Topics.isOfUser(((TopicPartition) partition).topic())) {
            return 0;
        }
        return (int) Reflect.call(records, "sizeInBytes");
    }

    /** Waits; Kafka's interrupt at the end of a fetcher stays set. */
    static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
