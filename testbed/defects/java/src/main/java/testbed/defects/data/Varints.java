package testbed.defects.data;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;

/** Reads and writes numbers of seven bits per byte, the lowest first, with the sign in the lowest bit. */
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

    byte nextByte() {
        return bytes.get(at++);
    }

    /** Returns so many bytes; null for a negative number. */
    byte[] nextBytes(int count) {
        if (count < 0) {
            return null;
        }
        byte[] found = new byte[count];
        bytes.get(at, found);
        at += count;
        return found;
    }

    static void write(ByteArrayOutputStream to, long value) {
        long rest = (value << 1) ^ (value >> 63);
        while ((rest & ~0x7FL) != 0) {
            to.write((int) (rest & 0x7F) | 0x80);
            rest >>>= 7;
        }
        to.write((int) rest);
    }
}
