package testbed.defects.data;

import java.nio.ByteBuffer;

/** Reads numbers of seven bits per byte, the lowest first, with the sign in the lowest bit. */
final class Varints {
    private final ByteBuffer bytes;
    private int at;

    Varints(ByteBuffer bytes, int at) {
        this.bytes = bytes;
        this.at = at;
    }

    int at() {
        return at;
    }

    void skip(int count) {
        at += count;
    }

    int next() {
        return (int) nextLong();
    }

    long nextLong() {
        long value = 0;
        int shift = 0;
        byte each;
        do {
            each = bytes.get(at++);
            value |= (long) (each & 0x7F) << shift;
            shift += 7;
        } while (each < 0);
        return (value >>> 1) ^ -(value & 1);
    }
}
