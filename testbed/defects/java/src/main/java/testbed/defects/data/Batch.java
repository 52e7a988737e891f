package testbed.defects.data;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/** A record batch of format 2 in a buffer, by its bytes: Kafka's own classes have moved between releases. */
record Batch(ByteBuffer bytes, int at, int size) {
    static final long NO_PRODUCER = -1;

    private static final int LENGTH = 8;
    private static final int LEADER_EPOCH = 12;
    private static final int MAGIC = 16;
    private static final int CRC = 17;
    private static final int ATTRIBUTES = 21;
    private static final int LAST_OFFSET_DELTA = 23;
    private static final int BASE_TIMESTAMP = 27;
    private static final int MAX_TIMESTAMP = 35;
    private static final int PRODUCER_ID = 43;
    private static final int PRODUCER_EPOCH = 51;
    private static final int BASE_SEQUENCE = 53;
    private static final int COUNT = 57;
    private static final int RECORDS = 61;
    // The length does not count itself and the base offset.
    private static final int OVERHEAD = 12;

    private static final int COMPRESSION = 0x07;
    private static final int TRANSACTIONAL = 0x10;
    private static final int CONTROL = 0x20;

    /** Returns the whole batches of format 2 with users' records; empty when a batch of another format is there. */
    static List<Batch> in(ByteBuffer bytes) {
        List<Batch> batches = new ArrayList<>();
        int at = bytes.position();
        while (bytes.limit() - at >= OVERHEAD) {
            int size = OVERHEAD + bytes.getInt(at + LENGTH);
            if (size < OVERHEAD || size > bytes.limit() - at) {
                break;
            }
            if (size < RECORDS || bytes.get(at + MAGIC) != 2) {
                return List.of();
            }
            batches.add(new Batch(bytes, at, size));
            at += size;
        }
        return batches;
    }

    /** Returns the batch alone, in bytes of its own. */
    Batch copied() {
        ByteBuffer copy = ByteBuffer.allocate(size);
        copy.put(0, bytes, at, size);
        return new Batch(copy, 0, size);
    }

    long baseOffset() {
        return bytes.getLong(at);
    }

    long nextOffset() {
        return baseOffset() + bytes.getInt(at + LAST_OFFSET_DELTA) + 1;
    }

    int leaderEpoch() {
        return bytes.getInt(at + LEADER_EPOCH);
    }

    long producerId() {
        return bytes.getLong(at + PRODUCER_ID);
    }

    boolean isControl() {
        return (attributes() & CONTROL) != 0;
    }

    boolean isCompressed() {
        return (attributes() & COMPRESSION) != 0;
    }

    boolean isTransactional() {
        return (attributes() & TRANSACTIONAL) != 0;
    }

    boolean isValid() {
        return bytes.getInt(at + CRC) == checksum();
    }

    /** Moves the batch to another offset; the checksum does not cover it. */
    Batch setBaseOffset(long offset) {
        bytes.putLong(at, offset);
        return this;
    }

    /** Makes it a batch that no idempotent producer sent. */
    Batch setNoProducer() {
        bytes.putShort(at + ATTRIBUTES, (short) (attributes() & ~TRANSACTIONAL));
        bytes.putLong(at + PRODUCER_ID, NO_PRODUCER);
        bytes.putShort(at + PRODUCER_EPOCH, (short) -1);
        bytes.putInt(at + BASE_SEQUENCE, -1);
        return sealed();
    }

    /** Moves the timestamps of all records. */
    Batch addTime(long ms) {
        bytes.putLong(at + BASE_TIMESTAMP, bytes.getLong(at + BASE_TIMESTAMP) + ms);
        bytes.putLong(at + MAX_TIMESTAMP, bytes.getLong(at + MAX_TIMESTAMP) + ms);
        return sealed();
    }

    /** Returns the records; none of a compressed batch. */
    List<Entry> entries() {
        List<Entry> entries = new ArrayList<>();
        if (!isCompressed() && !isControl()) {
            Varints in = new Varints(bytes, at + RECORDS);
            for (int each = 0; each < bytes.getInt(at + COUNT); each++) {
                entries.add(Entry.read(in));
            }
        }
        return entries;
    }

    /** Returns the batch with other records, as many as it has, in bytes of its own. */
    Batch with(List<Entry> entries) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (Entry each : entries) {
            each.write(out);
        }
        ByteBuffer copy = ByteBuffer.allocate(RECORDS + out.size());
        copy.put(0, bytes, at, RECORDS);
        copy.put(RECORDS, out.toByteArray());
        copy.putInt(LENGTH, copy.capacity() - OVERHEAD);
        return new Batch(copy, 0, copy.capacity()).sealed();
    }

    /** Flips a bit in the middle of the first value that has bytes; returns whether there was one. */
    boolean flipBit() {
        if (isCompressed() || isControl()) {
            return false;
        }
        Varints record = new Varints(bytes, at + RECORDS);
        for (int each = 0; each < bytes.getInt(at + COUNT); each++) {
            int length = record.next();
            int end = record.at() + length;
            record.skip(1); // Attributes.
            record.nextLong(); // The time, against the batch's.
            record.next(); // The offset, against the batch's.
            record.skip(Math.max(0, record.next())); // The key.
            int value = record.next();
            if (value > 0) {
                int middle = record.at() + value / 2;
                bytes.put(middle, (byte) (bytes.get(middle) ^ 1));
                sealed();
                return true;
            }
            record.skip(end - record.at());
        }
        return false;
    }

    private int attributes() {
        return bytes.getShort(at + ATTRIBUTES);
    }

    private Batch sealed() {
        bytes.putInt(at + CRC, checksum());
        return this;
    }

    private int checksum() {
        CRC32C crc = new CRC32C();
        crc.update(bytes.slice(at + ATTRIBUTES, size - ATTRIBUTES));
        return (int) crc.getValue();
    }
}
