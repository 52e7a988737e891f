package testbed.tiered;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;

/** At most so many bytes of a stream; closes it when closed. */
final class Bounded extends FilterInputStream {
    private long left;

    Bounded(InputStream in, long length) {
        super(in);
        left = length;
    }

    @Override
    public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
        if (left <= 0) {
            return length == 0 ? 0 : -1;
        }
        int count = in.read(into, offset, (int) Math.min(length, left));
        left -= Math.max(0, count);
        return count;
    }

    @Override
    public long skip(long count) throws IOException {
        long skipped = in.skip(Math.min(count, left));
        left -= skipped;
        return skipped;
    }

    @Override
    public int available() throws IOException {
        return (int) Math.min(in.available(), left);
    }

    @Override
    public boolean markSupported() {
        return false;
    }
}
