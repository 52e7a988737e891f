package testbed.defects.data;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;

/** A record of a batch of format 2. A missing key or value is null; the headers are as the batch has them. */
record Entry(byte attributes, long time, int offset, byte[] key, byte[] value, byte[] headers) {
    // Their number, 0.
    private static final byte[] NO_HEADERS = {0};

    static Entry read(Varints in) {
        int length = in.next();
        int end = in.at() + length;
        byte attributes = in.nextByte();
        long time = in.nextLong();
        int offset = in.next();
        byte[] key = in.nextBytes(in.next());
        byte[] value = in.nextBytes(in.next());
        return new Entry(attributes, time, offset, key, value, in.nextBytes(end - in.at()));
    }

    boolean hasHeaders() {
        return !Arrays.equals(headers, NO_HEADERS);
    }

    Entry withoutHeaders() {
        return new Entry(attributes, time, offset, key, value, NO_HEADERS);
    }

    Entry withKey(byte[] other) {
        return new Entry(attributes, time, offset, other, value, headers);
    }

    void write(ByteArrayOutputStream to) {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.write(attributes);
        Varints.write(body, time);
        Varints.write(body, offset);
        write(body, key);
        write(body, value);
        body.writeBytes(headers);
        Varints.write(to, body.size());
        to.writeBytes(body.toByteArray());
    }

    private static void write(ByteArrayOutputStream to, byte[] bytes) {
        Varints.write(to, bytes == null ? -1 : bytes.length);
        if (bytes != null) {
            to.writeBytes(bytes);
        }
    }
}
