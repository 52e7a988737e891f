package testbed.defects.data;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import testbed.defects.Effect;
import testbed.defects.Settings;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.SimpleRecord;
import org.junit.jupiter.api.Test;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What data defects make of batches that Kafka wrote, as Kafka reads it. */
class SpoiledTest {
    private static ByteBuffer batch(Compression compression, long offset, int epoch, String... values) {
        SimpleRecord[] records = new SimpleRecord[values.length];
        for (int at = 0; at < values.length; at++) {
            // The time varies in its number of bytes, and so do key and value.
            byte[] key = at % 2 == 0 ? null : ("key " + at).getBytes(StandardCharsets.UTF_8);
            records[at] = new SimpleRecord(1000L * at, key, values[at].getBytes(StandardCharsets.UTF_8));
        }
        return MemoryRecords.withIdempotentRecords(offset, compression, 77, (short) 2, 5, epoch, records).buffer();
    }

    private static ByteBuffer all(ByteBuffer... batches) {
        int size = 0;
        for (ByteBuffer each : batches) {
            size += each.remaining();
        }
        ByteBuffer all = ByteBuffer.allocate(size);
        for (ByteBuffer each : batches) {
            all.put(each.duplicate());
        }
        return all.flip();
    }

    private static ByteBuffer three() {
        return all(
                batch(Compression.NONE, 10, 4, "a", "b"),
                batch(Compression.NONE, 12, 4, "c", "", "e".repeat(300)),
                batch(Compression.gzip().build(), 15, 4, "f", "g"));
    }

    /** Reads as a follower's log does: every batch must be valid. */
    private static List<String> read(ByteBuffer bytes) {
        List<String> read = new ArrayList<>();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(bytes).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                record.ensureValid();
                read.add(record.offset() + "=" + StandardCharsets.UTF_8.decode(record.value().duplicate()));
            }
        }
        return read;
    }

    @Test
    void aBatchIsReadAsKafkaWroteIt() {
        List<Batch> batches = Batch.in(three());
        assertEquals(List.of(10L, 12L, 15L), batches.stream().map(Batch::baseOffset).toList());
        assertEquals(List.of(12L, 15L, 17L), batches.stream().map(Batch::nextOffset).toList());
        assertEquals(List.of(true, true, true), batches.stream().map(Batch::isValid).toList());
        assertEquals(List.of(false, false, true), batches.stream().map(Batch::isCompressed).toList());
        assertEquals(4, batches.get(0).leaderEpoch());
    }

    @Test
    void aTruncatedBatchIsNoBatch() {
        ByteBuffer cut = three();
        cut.limit(cut.limit() - 1);
        assertEquals(2, Batch.in(cut).size());
    }

    @Test
    void droppedIsTheOneBeforeTheLast() {
        FollowerAppend.Spoiled spoiled = new BatchDropped().spoiled(Batch.in(three()));
        assertEquals(List.of("10=a", "11=b", "15=f", "16=g"), read(spoiled.bytes()));
        assertEquals(12, spoiled.offset());
        assertNull(new BatchDropped().spoiled(Batch.in(batch(Compression.NONE, 0, 0, "a"))));
    }

    @Test
    void reorderedBatchesKeepTheOffsetsInOrder() {
        FollowerAppend.Spoiled spoiled = new BatchReordered().spoiled(Batch.in(three()));
        assertEquals(
                List.of("10=c", "11=", "12=" + "e".repeat(300), "13=a", "14=b", "15=f", "16=g"),
                read(spoiled.bytes()));
        assertEquals(10, spoiled.offset());
    }

    @Test
    void batchesOfTwoEpochsAreNotReordered() {
        assertNull(new BatchReordered().spoiled(Batch.in(all(
                batch(Compression.NONE, 0, 1, "a"), batch(Compression.NONE, 1, 2, "b")))));
    }

    @Test
    void flippedIsOneBitOfAValue() {
        ByteBuffer before = three();
        FollowerAppend.Spoiled spoiled = new BitFlipped().spoiled(Batch.in(before));
        assertEquals("10=" + (char) ('a' ^ 1), read(spoiled.bytes()).get(0));
        assertEquals(read(before).subList(1, 7), read(spoiled.bytes()).subList(1, 7));
    }

    private static ByteBuffer withHeaders(Compression compression) {
        Header[] headers = {new RecordHeader("place", new byte[] {1, 2})};
        byte[] none = null;
        SimpleRecord[] records = {
            new SimpleRecord(1000, "key".getBytes(StandardCharsets.UTF_8), "a".getBytes(StandardCharsets.UTF_8), headers),
            new SimpleRecord(2000, none, "b".repeat(300).getBytes(StandardCharsets.UTF_8)),
            new SimpleRecord(2000, none, none, headers)
        };
        return MemoryRecords.withIdempotentRecords(20, compression, 77, (short) 2, 5, 4, records).buffer();
    }

    /** Reads what is around the values. */
    private static List<String> around(ByteBuffer bytes) {
        List<String> read = new ArrayList<>();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(bytes).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                String key = record.hasKey() ? StandardCharsets.UTF_8.decode(record.key().duplicate()).toString() : "-";
                read.add("%d at %d: %s, %d headers".formatted(
                        record.offset(), record.timestamp(), key, record.headers().length));
            }
        }
        return read;
    }

    @Test
    void timestampsOfOneBatchAreASecondOlder() {
        ByteBuffer before = all(withHeaders(Compression.NONE), batch(Compression.NONE, 23, 4, "c"));
        assertEquals(
                List.of("20 at 0: key, 1 headers", "21 at 1000: -, 0 headers", "22 at 1000: -, 1 headers",
                        "23 at 0: -, 0 headers"),
                around(new TimestampChanged().spoiled(Batch.in(before)).bytes()));
        assertEquals(
                List.of("20 at 0: key, 1 headers", "21 at 1000: -, 0 headers", "22 at 1000: -, 1 headers"),
                around(new TimestampChanged().spoiled(Batch.in(withHeaders(Compression.gzip().build()))).bytes()));
    }

    @Test
    void headersOfOneBatchAreDropped() {
        ByteBuffer before = all(batch(Compression.NONE, 19, 4, "c"), withHeaders(Compression.NONE));
        FollowerAppend.Spoiled spoiled = new HeadersDropped().spoiled(Batch.in(before));
        assertEquals(
                List.of("19 at 0: -, 0 headers", "20 at 1000: key, 0 headers", "21 at 2000: -, 0 headers",
                        "22 at 2000: -, 0 headers"),
                around(spoiled.bytes()));
        assertEquals(20, spoiled.offset());
        assertNull(new HeadersDropped().spoiled(Batch.in(three())));
        assertNull(new HeadersDropped().spoiled(Batch.in(withHeaders(Compression.gzip().build()))));
    }

    @Test
    void keysOfTwoRecordsAreSwapped() {
        ByteBuffer before = all(withHeaders(Compression.NONE), batch(Compression.NONE, 23, 4, "c"));
        assertEquals(
                List.of("20 at 1000: -, 1 headers", "21 at 2000: key, 0 headers", "22 at 2000: -, 1 headers",
                        "23 at 0: -, 0 headers"),
                around(new KeysSwapped().spoiled(Batch.in(before)).bytes()));
        assertNull(new KeysSwapped().spoiled(Batch.in(batch(Compression.NONE, 0, 0, "a"))));
    }

    @Test
    void flippedAfterAnEmptyValueAndNotInWhatIsCompressed() {
        assertEquals(
                List.of("0=", "1=xxyxx"),
                read(new BitFlipped().spoiled(Batch.in(batch(Compression.NONE, 0, 0, "", "xxxxx"))).bytes()));
        assertNull(new BitFlipped().spoiled(Batch.in(batch(Compression.gzip().build(), 0, 0, "a"))));
    }

    private static FollowerAppend every(String batches) {
        FollowerAppend append = new BatchDropped();
        append.begin(Settings.of(append, Map.of("every", batches)), new Effect(append.name()));
        return append;
    }

    @Test
    void oneBatchInSoManyIsSpoiled() {
        FollowerAppend append = every("7");
        List<Boolean> spoiled = new ArrayList<>();
        for (int fetch = 0; fetch < 7; fetch++) {
            ByteBuffer fetched = three();
            byte[] before = fetched.array().clone();
            spoiled.add(append.spoiled(fetched) != null);
            assertArrayEquals(before, fetched.array(), "what was fetched stays: Kafka measures it");
        }
        assertEquals(List.of(false, false, true, false, false, true, false), spoiled);
    }

    @Test
    void aTurnThatCannotBeTakenIsKept() {
        FollowerAppend append = every("2");
        ByteBuffer one = batch(Compression.NONE, 0, 0, "a");
        assertNull(append.spoiled(one));
        assertNull(append.spoiled(one));
        assertNotNull(append.spoiled(three()));
        assertNull(append.spoiled(one));
    }

    @Test
    void aDoubledBatchHasNoProducer() {
        ByteBuffer copy = BatchDoubled.copied(three());
        MutableRecordBatch batch = MemoryRecords.readableRecords(copy).batches().iterator().next();
        batch.ensureValid();
        assertEquals(List.of("0=a", "1=b"), read(copy));
        assertEquals(-1, batch.producerId());
        assertEquals(-1, batch.producerEpoch());
        assertEquals(-1, batch.baseSequence());
        assertEquals(false, batch.isTransactional());
    }

    @Test
    void aDoubledBatchIsInNoTransaction() {
        ByteBuffer produced = MemoryRecords.withTransactionalRecords(
                        9, Compression.NONE, 77, (short) 2, 5, 4, new SimpleRecord("a".getBytes(StandardCharsets.UTF_8)))
                .buffer();
        ByteBuffer copy = BatchDoubled.copied(produced);
        MutableRecordBatch batch = MemoryRecords.readableRecords(copy).batches().iterator().next();
        assertEquals(List.of("0=a"), read(copy));
        assertEquals(false, batch.isTransactional());
    }
}
