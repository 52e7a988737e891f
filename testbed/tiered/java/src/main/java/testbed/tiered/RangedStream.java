package testbed.tiered;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.util.concurrent.ThreadLocalRandom;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.core.ResponseInputStream;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;

/**
 * Part of an object, asked for piece by piece, each when it is wanted.
 *
 * <p>Kafka opens a segment from some position to its end, and reads about a mebibyte of it: a single request would have
 * the store send what nobody reads. A body that ends early is gone on with from the byte where it ended, a bounded number
 * of times without a byte of progress.
 */
final class RangedStream extends InputStream {
    private static final Logger LOG = LoggerFactory.getLogger(RangedStream.class);
    /** So little is read to the end, so that the connection can be used again. */
    private static final long DRAINED_BYTES = 64 << 10;

    private final Store store;
    private final String key;
    private final Settings settings;
    private final long end;
    private long position;
    private ResponseInputStream<GetObjectResponse> piece;
    private long pieceEnd;
    private int failures;
    private boolean closed;

    /** From <code>start</code> to <code>end</code>, both inclusive. Throws SdkException when it cannot be opened. */
    RangedStream(Store store, String key, Settings settings, long start, long end) {
        this.store = store;
        this.key = key;
        this.settings = settings;
        this.position = start;
        this.end = end;
        // At once: that there is no such object is to be known now, not at the first read.
        if (position <= end) {
            open();
        }
    }

    private void open() {
        pieceEnd = Math.min(end, position + settings.fetchBytes - 1);
        piece = store.open(key, position, pieceEnd);
    }

    @Override
    public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
        if (closed) {
            throw new IOException("the stream of " + key + " is closed");
        }
        if (length == 0) {
            return 0;
        }
        while (position <= end) {
            String why = "the body ended early";
            IOException cause = null;
            try {
                if (piece == null) {
                    open();
                }
                int count = piece.read(into, offset, (int) Math.min(length, pieceEnd + 1 - position));
                if (count > 0) {
                    failures = 0;
                    position += count;
                    if (position > pieceEnd) {
                        piece.close();
                        piece = null;
                    }
                    return count;
                }
            } catch (IOException error) {
                why = "the body broke off";
                cause = error;
            } catch (SdkException error) {
                // With its own attempts behind it; what follows is for the caller to decide.
                throw new IOException(told("cannot be read"), error);
            }
            failed(why, cause);
        }
        return -1;
    }

    private void failed(String why, IOException error) throws IOException {
        abandon();
        failures++;
        if (failures >= settings.maxAttempts) {
            throw new IOException(told(why + ", " + failures + " times without a byte"), error);
        }
        LOG.info("{}: going on from byte {}", told(why), position);
        long most = Math.min(settings.backoffMax.toMillis(), settings.backoff.toMillis() << Math.min(failures - 1, 20));
        try {
            Thread.sleep(ThreadLocalRandom.current().nextLong(most + 1));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw (InterruptedIOException) new InterruptedIOException(told("interrupted")).initCause(interrupted);
        }
    }

    private String told(String what) {
        return key + " at byte " + position + " of " + (end + 1) + ": " + what;
    }

    private void abandon() {
        if (piece != null) {
            piece.abort();
            piece = null;
        }
    }

    @Override
    public int available() throws IOException {
        return piece == null ? 0 : (int) Math.min(piece.available(), pieceEnd + 1 - position);
    }

    @Override
    public void close() throws IOException {
        closed = true;
        if (piece != null && pieceEnd + 1 - position <= DRAINED_BYTES) {
            try {
                piece.skipNBytes(pieceEnd + 1 - position);
                piece.close();
                piece = null;
            } catch (IOException error) {
                LOG.debug("{}", told("not read to the end of the piece"), error);
            }
        }
        abandon();
    }
}
