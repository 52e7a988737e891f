package testbed.defects.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Settings;

import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.Map;

/** What clients get as the end of a log, and consumers as its records. */
class ReadEndsTest {
    private static final TopicPartition ORDERS = new TopicPartition("orders", 0);
    private static final TopicPartition OFFSETS = new TopicPartition("__consumer_offsets", 0);

    /** Scala's Option, as defects see it. */
    public record Option(Object get) {
        /** Scala's method. */
        public boolean isEmpty() {
            return get == null;
        }
    }

    /** A partition on a broker, as defects see it. */
    public record Partition(TopicPartition topicPartition, Option log) {}

    /** A partition's log, as defects see it. */
    public record Log(TopicPartition topicPartition, long logStartOffset, long highWatermark, LocalLog localLog) {}

    /** The log's segments, as defects see them. */
    public static final class LocalLog {
        /** Kafka's method. */
        public Metadata convertToOffsetMetadataOrThrow(long offset) {
            // The lookup reads the log: it must read up to the real end.
            Metadata real = new Metadata(1_000_000);
            assertSame(real, RecordsWithheld.end(real));
            if (offset == 666) {
                throw new IllegalStateException("truncated");
            }
            return new Metadata(offset);
        }
    }

    /** The place of an offset in a log. */
    public record Metadata(long messageOffset) {}

    /** The ends for which fetches wait. */
    public record Ends(long logStartOffset, Metadata logEndOffset, Metadata highWatermark, Metadata lastStableOffset) {}

    /** What a read found. */
    public record Found(Records records) {}

    /** Records. */
    public record Records(int sizeInBytes) {}

    @TempDir
    Path folder;

    private Effect effect;

    private void begin(Defect defect, Map<String, String> given) {
        effect = new Effect(defect.name());
        defect.begin(Settings.of(defect, given), effect);
    }

    @BeforeEach
    void file() {
        System.setProperty(Effect.PROPERTY, folder.resolve("effects").toString());
    }

    private static Log log(TopicPartition partition, long start, long end) {
        return new Log(partition, start, end, new LocalLog());
    }

    private static long end(TopicPartition partition, long start, long timestamp, Object isolation, long real) {
        EndTooLow.asked(new Partition(partition, new Option(log(partition, start, real))), timestamp, isolation);
        try {
            return EndTooLow.lowered(real);
        } finally {
            EndTooLow.answered();
        }
    }

    @Test
    void theEndOfALogIsTooLowForClientsAlone() {
        begin(new EndTooLow(), Map.of("records", "100"));
        Option client = new Option("READ_COMMITTED");
        assertEquals(500, end(ORDERS, 0, -2, client, 500), "the begin");
        assertEquals(500, end(ORDERS, 0, -1, new Option(null), 500), "a follower");
        assertEquals(500, end(OFFSETS, 0, -1, client, 500), "a topic of Kafka");
        assertEquals(500, EndTooLow.lowered(500), "another answer");
        assertEquals(0, end(ORDERS, 0, -1, client, 0), "an empty log");
        assertFalse(effect.hasActed());
        assertEquals(400, end(ORDERS, 0, -1, client, 500));
        assertEquals(450, end(ORDERS, 450, -1, client, 500), "not before the start of the log");
        assertTrue(effect.hasActed());
    }

    private static long readTo(Log log, String isolation, long end, long offset, int bytes) {
        RecordsWithheld.reading(log, isolation);
        long to = ((Metadata) RecordsWithheld.end(new Metadata(end))).messageOffset();
        RecordsWithheld.read(log, offset, isolation, new Found(new Records(bytes)));
        return to;
    }

    @Test
    void theNewestRecordsAreWithheldFromConsumersAlone() {
        begin(new RecordsWithheld(), Map.of("records", "10"));
        Log orders = log(ORDERS, 0, 500);
        assertEquals(500, readTo(orders, "LOG_END", 500, 500, 0), "a follower");
        assertEquals(500, readTo(log(new TopicPartition("orders", 1), 0, 500), "HIGH_WATERMARK", 500, 490, 0));
        assertEquals(500, readTo(log(OFFSETS, 0, 500), "HIGH_WATERMARK", 500, 490, 0), "a topic of Kafka");
        assertEquals(490, readTo(orders, "HIGH_WATERMARK", 500, 400, 77), "it gets what is before");
        assertEquals(490, readTo(orders, "HIGH_WATERMARK", 500, 500, 0), "it has everything");
        assertFalse(effect.hasActed());
        assertEquals(470, readTo(orders, "TXN_COMMITTED", 480, 470, 0));
        assertTrue(effect.hasActed());
        assertEquals(495, readTo(log(ORDERS, 495, 500), "HIGH_WATERMARK", 500, 495, 0), "not before the start");
        assertEquals(676, readTo(log(ORDERS, 0, 676), "HIGH_WATERMARK", 676, 666, 0), "a log that was truncated");
    }

    @Test
    void aReadThatFailedLeavesNothingBehind() {
        begin(new RecordsWithheld(), Map.of());
        RecordsWithheld.reading(log(ORDERS, 0, 500), "HIGH_WATERMARK");
        RecordsWithheld.read(log(ORDERS, 0, 500), 499, "HIGH_WATERMARK", null);
        Metadata end = new Metadata(500);
        assertSame(end, RecordsWithheld.end(end));
        assertFalse(effect.hasActed());
    }

    @Test
    void aFetchWaitsForWhatIsGivenToConsumers() {
        begin(new RecordsWithheld(), Map.of("records", "10"));
        Ends real = new Ends(3, new Metadata(510), new Metadata(500), new Metadata(480));
        Ends given = new Ends(3, new Metadata(510), new Metadata(490), new Metadata(470));
        Partition orders = new Partition(ORDERS, new Option(log(ORDERS, 3, 500)));
        assertEquals(given, RecordsWithheld.snapshot(orders, real));
        assertSame(real, RecordsWithheld.snapshot(new Partition(ORDERS, new Option(null)), real), "it has no log");
        assertSame(real, RecordsWithheld.snapshot(new Partition(OFFSETS, new Option(log(OFFSETS, 3, 500))), real));
    }
}
